package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Amendment is the result of [Desk.Amend].
type Amendment int

// The amendments. The zero value goes with an error.
const (
	Replaced  Amendment = iota + 1 // the task was waiting and has the new text
	Corrected                      // the task had started, and the change became a new message in its thread
	TooLate                        // the task has ended
	Outdated                       // the task has a newer change
)

// Amend replaces a task whose message was edited; t is the whole new task with the same ID. A task that has started
// does not change; instead its live run, or the next run of its thread, gets the new text. edit identifies this edit;
// later edits of a task have greater values. Repeating an edit, or applying an older one, changes nothing. Amend
// returns the errors of Submit, and ErrNotFound.
func (d *Desk) Amend(ctx context.Context, t Task, edit string) (Amendment, error) {
	topic := topic(t)
	t, err := d.policy.apply(t)
	if err != nil {
		return 0, err
	}
	err = d.store.Amend(ctx, store.Record{ID: t.ID, Task: format.JSON(t), MergeKey: MergeKey(t), Scopes: t.scopes(), Topic: topic}, edit)
	switch {
	case errors.Is(err, store.ErrBegun):
		return d.correct(ctx, t, edit)
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
func (d *Desk) correct(ctx context.Context, t Task, edit string) (Amendment, error) {
	rec, err := d.store.Get(ctx, t.ID)
	if err != nil {
		return 0, d.notFound(t.ID, err)
	}
	c, err := ReadTask(rec)
	if err != nil {
		return 0, err
	}
	c.ID = Edited(t.ID, edit)
	c.Prompt, c.Origin = "I have edited my message. It now reads:\n\n"+t.Prompt, t.Origin
	if _, err := d.Submit(ctx, c); err != nil {
		return 0, err
	}
	return Corrected, nil
}

// Edited returns the ID of the task for an edit. In the order of the thread it comes right after the task that it
// edits.
func Edited(id, edit string) string {
	id += "-edit-" + idForbid.ReplaceAllString(edit, "-")
	return id[:min(len(id), maxID)]
}

// Withdraw ends a task that has not started, because its message was deleted. No message is posted. It returns false
// and changes nothing if the task has started or ended, and ErrNotFound if it does not exist.
func (d *Desk) Withdraw(ctx context.Context, id string) (bool, error) {
	done, err := d.store.Withdraw(ctx, id, format.JSON(Ending{Kind: Withdrawn, At: time.Now()}))
	if err != nil {
		return false, d.notFound(id, err)
	}
	if done {
		d.log.Info("task withdrawn", "run", id)
	}
	return done, nil
}
