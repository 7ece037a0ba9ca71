package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
)

// StopAll cancels, on behalf of by, the unfinished tasks of a thread that were requested, or last retried, before the
// time of the ID before. So a stop command can arrive late and repeatedly. Waiting tasks are cancelled first, so that
// none of them starts in the meantime, and so are the messages that the run absorbed: those that the agent has not read
// would start when the run stops. governs reports whether by may stop a task; spared counts the tasks for which it
// returns false.
func (d *Desk) StopAll(
	ctx context.Context, thread, before, by string, governs func(tasks.Task) bool,
) (stopped, spared int, err error) {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return 0, 0, err
	}
	for _, st := range slices.Backward(open) {
		switch {
		case st.Task.ID > before, st.Retried.After(tasks.Born(before)):
		case !governs(st.Task):
			spared++
		default:
			absorbed, err := d.store.Absorbed(ctx, st.Task.ID)
			if err != nil {
				return stopped, spared, err
			}
			for _, rec := range absorbed {
				if rec.ID > before || rec.Retried.After(tasks.Born(before)) || !governs(d.status(rec).Task) {
					continue
				}
				if _, err := d.Cancel(ctx, rec.ID, by); err != nil {
					return stopped, spared, err
				}
			}
			if _, err := d.Cancel(ctx, st.Task.ID, by); err != nil {
				return stopped, spared, err
			}
			stopped++
		}
	}
	return stopped, spared, nil
}

// Repeat is Retry for a command that may arrive late and repeatedly. It returns ErrNotEnded for a task that was
// retried after the command was given.
func (d *Desk) Repeat(ctx context.Context, st tasks.Status, said time.Time) error {
	if st.Ending == nil || st.Ended.After(said) {
		return tasks.ErrNotEnded
	}
	_, err := d.Retry(ctx, st.Task.ID)
	return err
}

// Supersede ends the waiting and running tasks of a thread for which outdated returns true, because something newer
// made them pointless. reason is one sentence for people. It can be called again and then ends the rest. Use it for
// automatic work only: it does not look at absorbed tasks.
func (d *Desk) Supersede(ctx context.Context, thread, reason string, outdated func(tasks.Task) bool) error {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return fmt.Errorf("supersede tasks: %w", err)
	}
	for _, st := range slices.Backward(open) { // backwards, because the end of the first would start the next
		if !outdated(st.Task) {
			continue
		}
		if err := d.stop(ctx, st.Task.ID, reason, record.CauseNewer); err != nil && !errors.Is(err, tasks.ErrNotFound) {
			return fmt.Errorf("supersede tasks: %w", err)
		}
	}
	return nil
}

// stop records a cancel, and ends the task if it is not running.
func (d *Desk) stop(ctx context.Context, id, by, cause string) error {
	rec, err := d.store.Cancel(ctx, id, by, cause)
	if err != nil {
		return d.notFound(id, err)
	}
	if rec.State == store.Waiting {
		if _, err := record.EndWaiting(ctx, d.store, rec.ID, record.CancellationOf(rec).Ending()); err != nil {
			return fmt.Errorf("cancel task %s: %w", rec.ID, err)
		}
	}
	d.log.Info("task cancelled", "run", id, "by", by, "cause", cause)
	return nil
}

// Cancel stops a task on behalf of by, and returns its new status. A waiting task ends at once, a running one within
// seconds, and a task that has ended does not change. If the task was absorbed by a run, the whole run stops.
func (d *Desk) Cancel(ctx context.Context, id, by string) (_ tasks.Status, err error) {
	defer func() { d.audit(ctx, "stop", id, err) }()
	if err := d.may(ctx, id, policy.Stop); err != nil {
		return tasks.Status{}, err
	}
	if err := d.stop(ctx, id, by, record.CauseUser); err != nil {
		return tasks.Status{}, err
	}
	return d.Status(ctx, id)
}

// Retry runs a task that has ended again, with fresh attempts, in the same conversation and with the rights of who
// retries it. It returns ErrNotEnded if the task has not ended, and an *InputError while the answer that absorbed tasks
// share with it is not posted.
func (d *Desk) Retry(ctx context.Context, id string) (_ tasks.Status, err error) {
	defer func() { d.audit(ctx, "retry", id, err) }()
	if err := d.may(ctx, id, policy.Operate); err != nil {
		return tasks.Status{}, err
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return tasks.Status{}, d.notFound(id, err)
	}
	st := d.status(rec)
	if err := d.policy.Budgets.PermitRetry(st.Task, rec.Cost, st.Ending); err != nil {
		return tasks.Status{}, err
	}
	var by json.RawMessage
	if asker := askerIn(ctx); asker != (tasks.Asker{}) {
		by = format.JSON(asker)
	}
	rec, err = d.store.Retry(ctx, id, by)
	if errors.Is(err, store.ErrNotEnded) {
		return tasks.Status{}, fmt.Errorf("retry task %s: %w", id, tasks.ErrNotEnded)
	}
	if errors.Is(err, store.ErrUnposted) {
		const why = "The answer to this and later messages is still being posted. Retry it after that, or ask again."
		return tasks.Status{}, &tasks.InputError{Sentence: why}
	}
	if err != nil {
		return tasks.Status{}, d.notFound(id, err)
	}
	d.enqueue(ctx, rec)
	return d.Status(ctx, id)
}
