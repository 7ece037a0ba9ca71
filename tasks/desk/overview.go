package desk

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Overview is the newest tasks by what people do about them.
type Overview struct {
	Asking  []tasks.Status // run, and have a question that the visitor may answer; all of them
	Running []tasks.Status // the others that run
	Waiting []tasks.Status
	Ended   []tasks.Status

	// Counts counts all tasks that run or wait, not only those above; Running includes those that ask.
	Counts  store.Counts
	Partial bool // more tasks may wait: with a filter, only those above are counted
}

// maxAsking bounds how many tasks with questions one overview reads.
const maxAsking = 200

// Overview returns the tasks that match a filter, at most Limit in each of Running, Waiting and Ended.
// State, Ending, Text and Before of the filter must be empty.
func (d *Desk) Overview(ctx context.Context, f Filter) (o Overview, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("list tasks by state: %w", err)
		}
	}()
	f.Limit = cmp.Or(f.Limit, defaultLimit)
	q := f.query(d.policy.People, d.policy.People.Visible(ctx))
	running, err := d.store.Running(ctx)
	if err != nil {
		return o, err
	}
	var ids []string
	for _, r := range slices.Backward(running) { // newest first
		if q.Head == nil || q.Head(r.Record) {
			ids = append(ids, r.ID)
		}
	}
	if o.Asking, o.Running, err = d.readRunning(ctx, ids, f.Limit); err != nil {
		return o, err
	}
	waiting, err := d.store.List(ctx, store.ListQuery{
		State: store.Waiting, Limit: f.Limit + 1, Head: q.Head, Look: q.Look, // one more shows whether there are more
	})
	if err != nil {
		return o, err
	}
	shown := waiting.Records[:min(len(waiting.Records), f.Limit)]
	if o.Waiting, err = d.statuses(ctx, shown); err != nil {
		return o, err
	}
	o.Counts = store.Counts{Running: len(ids), Waiting: len(shown)}
	o.Partial = waiting.Next != ""
	if q.Head == nil {
		o.Partial = false
		if o.Counts, err = d.store.Counts(ctx); err != nil {
			return o, err
		}
	}
	q.State = store.Ended
	ended, err := d.store.List(ctx, q)
	if err != nil {
		return o, err
	}
	o.Ended, err = d.statuses(ctx, ended.Records)
	return o, err
}

// readRunning reads those of the running tasks whose questions the visitor may answer, and the newest of the others.
func (d *Desk) readRunning(ctx context.Context, ids []string, most int) (asking, others []tasks.Status, err error) {
	stored, err := d.store.Questions.ListAll(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	var wanted []string
	asks, quiet := 0, 0
	for i, questions := range stored {
		open := slices.ContainsFunc(questions, func(q store.Question) bool { return q.Answer == nil })
		if open && asks < maxAsking {
			asks++
		} else if quiet++; quiet > most {
			continue
		}
		wanted = append(wanted, ids[i])
	}
	list, err := d.readIn(ctx, wanted, store.Running)
	for _, s := range list {
		switch {
		case len(s.Questions) > 0 && d.policy.People.Permit(ctx, s.Task, policy.Use) == nil:
			asking = append(asking, s)
		case len(others) < most:
			others = append(others, s)
		}
	}
	return asking, others, err
}

// readIn returns the status of those of some tasks that are still in a state, or cannot be read.
func (d *Desk) readIn(ctx context.Context, ids []string, state store.State) ([]tasks.Status, error) {
	records, err := d.store.Records(ctx, ids)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r store.Record) bool { return r.State != state && r.Unreadable == "" })
	return d.statuses(ctx, records)
}
