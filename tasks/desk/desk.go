// Package desk is the only way in: sources, the console and the command line submit, change, stop, retry and read tasks
// through a [Desk]. It shows visitors only what they may see, and records in the audit log what people change.
//
// The desk promises that a submitted task is stored once per ID, that it gets exactly one ending, and that it gets a
// delivery even if the submitter dies before it has enqueued the task. It does not promise at-most-once execution: a
// task whose worker died runs again and resumes from its checkpoint, which may be minutes old.
//
// A [Desk] is safe for concurrent use by any number of processes on one Redis.
package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Desk is the only way in: sources, the console and the command line make every request to the fleet through it. It
// is safe for concurrent use.
type Desk struct {
	*trail

	store     *store.Store
	queue     *queue.Queue
	policy    rights.Policy
	submitted func(tasks.Task, Receipt) // see Metered
	log       *slog.Logger

	patience time.Duration // how long Offer waits for a worker; tests shorten it
}

// New returns a desk for a store and a queue. If log is nil, nothing is logged.
func New(s *store.Store, q *queue.Queue, p rights.Policy, log *slog.Logger) *Desk {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Desk{
		trail: &trail{s.Audit, p.People, log}, store: s, queue: q, policy: p, submitted: func(tasks.Task, Receipt) {},
		log: log, patience: offerWait,
	}
}

// Listener is the side of a [tasks.Source] that takes in events, in front doors.
type Listener interface {
	// Listen registers the source's routes on mux and returns. Goroutines that it starts end with ctx. It turns
	// events into tasks and calls d.Submit.
	Listen(ctx context.Context, mux *http.ServeMux, d *Desk) error
}

// Metered returns a copy of the desk that reports each submitted task, for its metrics. It calls submitted from many
// goroutines; submitted must not block.
func (d *Desk) Metered(submitted func(tasks.Task, Receipt)) *Desk {
	metered := *d
	metered.submitted = submitted
	return &metered
}

// Receipt describes the result of [Desk.Submit].
type Receipt struct {
	ID  string
	New bool // false if the same task was submitted before

	Answered bool // the message answered a question of the running task ID and did not become a task

	Position int  // of a new task: how many tasks of its thread come first, a running one included
	Joins    bool // the live run of its thread will absorb it; otherwise it waits its turn
}

// Submit stores a task and enqueues it. It is idempotent: submitting the same ID again, at any time and from any
// process, succeeds and changes nothing. An *InputError says what the person has to change. After any other error the
// task may not have been stored, and the sender should try again.
//
// If t.Reply is set and the thread's running task waits for an answer, the message may become that answer instead of
// a task.
//
// Submit returns soon after ctx ends, so that a front door can answer in time. A request to Redis that was under way
// may still succeed; when the same event arrives again, Submit finds the task.
func (d *Desk) Submit(ctx context.Context, t tasks.Task) (Receipt, error) {
	receipt, err := d.submit(ctx, t)
	if err == nil {
		d.submitted(t, receipt)
	}
	return receipt, err
}

func (d *Desk) submit(ctx context.Context, t tasks.Task) (Receipt, error) {
	var err error
	if t.Login, err = d.loginOf(ctx, t); err != nil {
		return Receipt{}, err
	}
	t.Partial = people.VisitorOf(ctx).Partial()
	record := store.Record{ID: t.ID, Thread: t.Thread, Reply: store.OnlyReply}
	only := t.Reply != nil && t.Reply.Only
	var budgets []store.Budget
	if !only {
		err := d.permitNew(ctx, t)
		if err != nil {
			return d.known(ctx, t.ID, err)
		}
		if t, record, err = d.record(t); err != nil {
			return d.known(ctx, t.ID, err)
		}
		if err := d.savePictures(ctx, t); err != nil {
			return Receipt{}, err
		}
		if !t.Unattended {
			budgets = d.policy.Budgets.Daily()
		}
	}
	rec, created, err := d.store.Submit(ctx, record, budgets...)
	if open, ok := errors.AsType[*store.OpenQuestion](err); ok {
		if receipt, err := d.reply(ctx, open.ID, t); err != nil || receipt.Answered {
			return receipt, err
		}
		if only {
			return Receipt{}, tasks.ErrNoQuestion
		}
		record.Reply = store.NoReply
		rec, created, err = d.store.Submit(ctx, record, budgets...)
	}
	switch {
	case errors.Is(err, store.ErrSpent): // the message was used as an answer before and is redelivered
		return Receipt{ID: t.ID, Answered: true}, nil
	case errors.Is(err, store.ErrNoQuestion):
		return Receipt{}, tasks.ErrNoQuestion
	case errors.Is(err, store.ErrTooLarge):
		return Receipt{}, tooLong()
	case err != nil:
		return Receipt{}, d.refused(err) // the store's errors name the task
	}
	if created {
		if !rec.At.After(time.Now()) && rec.Blocked == (store.Blocked{}) {
			d.enqueue(ctx, rec)
		}
		d.log.Info("task submitted", "run", t.ID, "thread", rec.Thread, "source", t.Source)
	}
	return Receipt{ID: t.ID, New: created, Position: rec.Before, Joins: rec.Joins}, nil
}

// known returns the receipt of a task that is stored already, although it would be refused now: a sender that did not
// hear of the first time submits it again. Otherwise it returns the refusal.
func (d *Desk) known(ctx context.Context, id string, refusal error) (Receipt, error) {
	_, err := d.store.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return Receipt{}, refusal
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("look for task %s: %w", id, err)
	}
	return Receipt{ID: id}, nil
}

// enqueue enqueues a task that waits. If it fails, the leader does it a little later.
func (d *Desk) enqueue(ctx context.Context, rec store.Record) {
	if err := d.queue.Enqueue(ctx, rec.ID, rec.Queue(), rec.Delivery); err != nil {
		d.log.Warn("enqueue task", "run", rec.ID, "err", err)
	}
}

// record applies the policy to a task, and returns it with its record.
func (d *Desk) record(t tasks.Task) (tasks.Task, store.Record, error) {
	topic := topic(t) // before the policy is applied, because the policy may have changed by the next task
	t, err := d.policy.Apply(t)
	if err != nil {
		return t, store.Record{}, err
	}
	body, err := json.Marshal(t)
	if err != nil {
		return t, store.Record{}, fmt.Errorf("marshal task %s: %w", t.ID, err)
	}
	rec := store.Record{
		ID: t.ID, Thread: t.Thread, Class: t.Class, Task: body, MergeKey: tasks.MergeKey(t),
		Scopes: d.policy.People.Scopes(t), Topic: topic, At: t.NotBefore,
	}
	rec.Pool = d.policy.PoolOf(rec)
	if t.Reply != nil {
		rec.Reply = store.MayReply
	}
	return t, rec, nil
}

func (d *Desk) notFound(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %s", tasks.ErrNotFound, id)
	}
	return fmt.Errorf("task %s: %w", id, err)
}

func tooLong() error {
	return &tasks.InputError{Sentence: "The request is too long: at most 1 MiB of text."}
}
