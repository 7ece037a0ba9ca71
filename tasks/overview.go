package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Overview is the newest tasks by what people do about them.
type Overview struct {
	Asking  []Status // run, and have a question that the visitor may answer; all of them
	Running []Status // the others that run
	Waiting []Status
	Ended   []Status

	// Counts counts all tasks of each state, not only those above; Running includes those that ask.
	Counts  store.Counts
	Partial bool // there are too many tasks to count: there are at least so many
}

// maxAsking bounds how many tasks with questions one overview reads.
const maxAsking = 200

// ReadOverview returns the tasks of a desk that match a filter, at most Limit in each of Running, Waiting and Ended.
// State, Ending, Text and Before of the filter must be empty.
func ReadOverview(ctx context.Context, d *Desk, f Filter) (o Overview, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("list tasks by state: %w", err)
		}
	}()
	q := f.query(d.policy.People, d.policy.People.visible(ctx))
	live, err := d.store.Unended(ctx, q)
	if err != nil {
		return o, err
	}
	o.Counts, o.Partial = live.Counts, live.Partial
	if o.Asking, o.Running, err = readRunning(ctx, d, live.RunningIDs, f.Limit); err != nil {
		return o, err
	}
	if o.Waiting, err = readIn(ctx, d, live.WaitingIDs, store.Waiting); err != nil {
		return o, err
	}
	q.State = store.Ended
	ended, err := d.store.List(ctx, q)
	if err != nil {
		return o, err
	}
	o.Ended, err = statuses(ctx, d, ended.Records)
	return o, err
}

// readRunning reads those of the running tasks whose questions the visitor may answer, and the newest of the others.
func readRunning(ctx context.Context, d *Desk, ids []string, most int) (asking, others []Status, err error) {
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
	list, err := readIn(ctx, d, wanted, store.Running)
	for _, s := range list {
		switch {
		case len(s.Questions) > 0 && d.policy.People.permit(ctx, s.Task, policy.Use) == nil:
			asking = append(asking, s)
		case len(others) < most:
			others = append(others, s)
		}
	}
	return asking, others, err
}

// readIn returns the status of those of some tasks that are still in a state, or cannot be read.
func readIn(ctx context.Context, d *Desk, ids []string, state store.State) ([]Status, error) {
	records, err := d.store.Records(ctx, ids)
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r store.Record) bool { return r.State != state && r.Unreadable == "" })
	return statuses(ctx, d, records)
}
