package desk

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/record"
)

// Amendment is the result of [Desk.Amend].
type Amendment int

// The amendments. The zero value goes with an error.
const (
	Replaced  Amendment = iota + 1 // the task was waiting and has the new text
	Corrected                      // the task had started, and the change became a new message in its thread
	TooLate                        // the task has ended
	Outdated                       // the task has a newer change
	Begun                          // the task had started, and nothing was changed
)

// Edit is an edit of the message of a task.
type Edit struct {
	Key     string // identifies the edit; later edits of a task have greater keys
	Waiting bool   // change nothing if the task has started, even if it waits again
}

// Amend replaces a task whose message was edited; t is the whole new task with the same ID. A task that has started
// does not change; instead its live run, or the next run of its thread, gets the new text, unless the edit is only for
// waiting tasks. Repeating an edit, or applying an older one, changes nothing. Amend returns the errors of Submit, and
// ErrNotFound.
func (d *Desk) Amend(ctx context.Context, t tasks.Task, edit Edit) (done Amendment, _ error) {
	var err error
	if t.Login, err = d.loginOf(ctx, t); err != nil {
		return 0, err
	}
	t.Partial = people.VisitorOf(ctx).Partial()
	t, rec, err := d.record(t)
	if err != nil {
		return 0, err
	}
	defer func() {
		if done == Replaced || done == Corrected {
			d.audit(ctx, "edit", t.ID, nil)
		}
	}()
	err = d.store.Amend(ctx, rec, edit.Key)
	switch {
	case errors.Is(err, store.ErrBegun) && edit.Waiting:
		return Begun, nil
	case errors.Is(err, store.ErrBegun):
		return d.correct(ctx, t, edit.Key)
	case errors.Is(err, store.ErrEnded):
		return TooLate, nil
	case errors.Is(err, store.ErrStale):
		return Outdated, nil
	case errors.Is(err, store.ErrTooLarge):
		return 0, tooLong()
	case err != nil:
		return 0, d.notFound(t.ID, err)
	}
	d.log.Info("task amended", "run", t.ID)
	return Replaced, nil
}

// correct submits the new text of a task that has started as the next task of its thread. It has the same merge key,
// so that the live run absorbs it.
func (d *Desk) correct(ctx context.Context, t tasks.Task, edit string) (Amendment, error) {
	rec, err := d.store.Get(ctx, t.ID)
	if err != nil {
		return 0, d.notFound(t.ID, err)
	}
	c, err := record.Task(rec)
	if err != nil {
		return 0, err
	}
	c.ID = tasks.Edited(t.ID, edit)
	c.Prompt, c.Origin = "I have edited my message. It now reads:\n\n"+t.Prompt, t.Origin
	if _, err := d.Submit(ctx, c); err != nil {
		return 0, err
	}
	return Corrected, nil
}

// Withdraw ends a task that has not started, because its message was deleted. No message is posted. It may be repeated.
// It returns false and changes nothing if the task has started or ended otherwise, and ErrNotFound if it does not
// exist.
func (d *Desk) Withdraw(ctx context.Context, id string) (bool, error) {
	done, err := d.store.Withdraw(ctx, id, format.JSON(tasks.Ending{Kind: tasks.Withdrawn, At: time.Now()}))
	if err != nil {
		return false, d.notFound(id, err)
	}
	if done {
		d.audit(ctx, "withdraw", id, nil)
		d.log.Info("task withdrawn", "run", id)
		return true, nil
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return false, d.notFound(id, err)
	}
	e, err := record.Ending(rec)
	return err == nil && e != nil && e.Kind == tasks.Withdrawn, nil
}
