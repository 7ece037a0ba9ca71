package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
)

// Status returns the status of one task, or ErrNotFound.
func (d *Desk) Status(ctx context.Context, id string) (tasks.Status, error) {
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return tasks.Status{}, d.notFound(id, err)
	}
	s, err := d.complete(ctx, rec)
	if denied := d.policy.People.Permit(ctx, s.Task, policy.See); denied != nil {
		return tasks.Status{}, denied
	}
	return s, err
}

// complete returns the status of a record, including what is stored outside the record.
func (d *Desk) complete(ctx context.Context, rec store.Record) (tasks.Status, error) {
	list := []tasks.Status{d.status(rec)}
	s := &list[0]
	if s.Unreadable != "" {
		return *s, nil
	}
	var err error
	switch rec.State {
	case store.Waiting:
		if err = d.notePlaces(ctx, []store.Record{rec}, list); err == nil {
			d.noteUnable(ctx, list)
		}
	case store.Running:
		err = d.askOpen(ctx, []store.Record{rec}, list)
	case store.Ended:
		s.Votes, err = d.readVotes(ctx, s.Task)
	}
	if rec.Into != "" {
		err = d.shared(ctx, s)
	}
	return *s, err
}

// status returns the status of a record. If the record cannot be read, the prompt and the ending say so.
func (d *Desk) status(rec store.Record) tasks.Status {
	t, err := record.Task(rec)
	if err != nil {
		t = tasks.Task{
			ID: rec.ID, Source: tasks.SourceOf(rec.ID), Kind: "unreadable", Thread: rec.Thread, Class: rec.Class,
			Prompt: err.Error(),
		}
	}
	s := tasks.Status{
		Task: t, Pool: rec.Pool, State: string(rec.State), Attempt: rec.Attempt,
		Delivery: queue.DeliveryID(rec.ID, rec.Delivery), Worker: rec.Worker, Cancel: rec.CancelBy, Into: rec.Into,
		Created: rec.Created, Started: rec.Started, Ended: rec.Ended, Retried: rec.Retried,
		Blocked: tasks.Blocked(rec.Blocked), Posted: rec.Shown || rec.Outbox < 0 && rec.Undelivered == "",
		Unposted: unposted(rec, time.Now()), CostUSD: rec.Cost, Settled: rec.Settled,
	}
	for _, r := range rec.Runs {
		s.Runs = append(s.Runs, tasks.Run(r))
	}
	if one, ok := d.policy.People.Author(t); ok {
		s.Person = one.Name
	}
	if s.Why = record.Why(rec); rec.State == store.Waiting {
		s.At = rec.At
	}
	ending, broken := record.Ending(rec)
	s.Ending = ending
	if bad, ok := errors.AsType[*record.UnreadableError](errors.Join(err, broken)); ok {
		s.Unreadable = bad.Error()
		if rec.Unreadable != "" { // the state is unreliable, and the task will never run
			s.State = string(store.Ended)
		}
		if s.Ending == nil && s.State == string(store.Ended) {
			s.Ending = &tasks.Ending{Kind: tasks.Failed, Reason: s.Unreadable, At: rec.Ended}
		}
	}
	return s
}

// shared completes the status of an absorbed task with its host's: the worker, the start and the whole ending, which
// only the host stores. If the host was retried or has expired, the task's own short ending remains.
func (d *Desk) shared(ctx context.Context, s *tasks.Status) error {
	rec, err := d.store.Get(ctx, s.Into)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", s.Into, err)
	}
	host := d.status(rec)
	switch {
	case s.Ending == nil:
		s.Started, s.Worker, s.Attempt = host.Started, host.Worker, host.Attempt
		s.Cancel = cmp.Or(s.Cancel, host.Cancel)
	case host.Ending != nil && host.Ending.At.Equal(s.Ending.At):
		s.Started, s.Worker, s.Attempt, s.Ending = host.Started, host.Worker, host.Attempt, host.Ending
		s.Posted, s.Unposted = host.Posted, host.Unposted
	}
	return nil
}

// PostingTime is how long posting a final message may take without being mentioned.
const PostingTime = time.Minute

// unposted returns, as a clause, that people do not have the final message of a task in its place, and why; empty if
// they have it, or will soon.
func unposted(rec store.Record, now time.Time) string {
	switch {
	case rec.State != store.Ended || rec.Shown || rec.Into != "":
		return ""
	case rec.Undelivered != "":
		return "answer not delivered: " + rec.Undelivered
	case rec.Outbox < 0:
		return ""
	case rec.Unposted != "":
		return "answer not posted yet: " + rec.Unposted
	case now.Sub(rec.Ended) > PostingTime:
		return "answer not posted yet"
	}
	return ""
}

// notePlaces adds the places of waiting tasks in the lines that they wait in, and says them as the reasons.
func (d *Desk) notePlaces(ctx context.Context, records []store.Record, list []tasks.Status) error {
	places, err := d.store.Places(ctx, records)
	if err != nil {
		return err
	}
	for i := range list {
		s, place := &list[i], places[i]
		s.Position = place
		switch {
		case place == 0:
		case s.Why == tasks.NoWorker: // no worker has looked at it yet
			s.Why = tasks.BlockedBy(tasks.Blocked{Place: place})
		case s.Blocked != (tasks.Blocked{}):
			s.Blocked.Place = place
			s.Why = tasks.BlockedBy(s.Blocked)
		}
	}
	return nil
}

// Depths returns the depths of the queues; see [queue.Queue.Depths].
func (d *Desk) Depths(ctx context.Context) ([]queue.Depth, error) { return d.queue.Depths(ctx) }

// redelivery matches the IDs of all deliveries of a task but the first; see DeliveryID.
var redelivery = regexp.MustCompile(`^(.+)\.r[1-9][0-9]*$`)

// Delivered returns the ID of the task that a delivery belongs to, or ErrNotFound. delivery is its ID in the queue. A
// task's own ID may end like a redelivery's, so Delivered looks for that task first.
func (d *Desk) Delivered(ctx context.Context, delivery string) (id string, err error) {
	id = delivery
	_, err = d.store.Get(ctx, id)
	if again := redelivery.FindStringSubmatch(delivery); errors.Is(err, store.ErrNotFound) && again != nil {
		id = again[1]
		_, err = d.store.Get(ctx, id)
	}
	if err != nil {
		return "", d.notFound(id, err)
	}
	return id, nil
}

// noteUnable sets why a due task waits, if its class is paused or no worker can run tasks.
func (d *Desk) noteUnable(ctx context.Context, list []tasks.Status) {
	due := func(s tasks.Status) bool { return s.State == string(store.Waiting) && !s.At.After(time.Now()) }
	if !slices.ContainsFunc(list, due) {
		return
	}
	seen, err := d.store.Workers.List(ctx)
	if err != nil {
		return // the task's own reason still holds
	}
	paused, err := d.store.Paused.All(ctx)
	if err != nil {
		return
	}
	for i, s := range list {
		if !due(s) {
			continue
		}
		halt, isPaused := paused[s.Task.Class]
		why := capacity.WhyNoWorkerFor(seen, s.Pool, s.Task.Source)
		if isPaused {
			why = capacity.WhyPaused(s.Task.Class, halt)
		}
		if why != "" {
			list[i].Why = why
		}
	}
}
