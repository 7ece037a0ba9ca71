package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Amendment is what became of a change to a task.
type Amendment int

// The amendments. The zero value goes with an error.
const (
	Replaced  Amendment = iota + 1 // it waits, and is what it was changed to
	Corrected                      // it was begun, and the change is a message of its own to its thread
	TooLate                        // it has ended
	Outdated                       // it was changed again since
)

// Amend changes a task that somebody has written anew: t is the whole of it, by its ID. One that was begun stays what it is; its live run is
// given the new words, or the next one of its thread. edit tells this change from others of the same task, of which later ones have greater
// names; the same one once more changes nothing, nor does one before it. The errors are those of Submit, and ErrNotFound.
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

// correct gives the new words of a task to its thread, where they come next: as a task of the same kin, so that its live run takes them up.
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
	c.Prompt, c.Origin = "I have changed my message. It now reads:\n\n"+t.Prompt, t.Origin
	if _, err := d.Submit(ctx, c); err != nil {
		return 0, err
	}
	return Corrected, nil
}

// Edited is the ID of what an edit of a task asks for: behind it in the order of its thread, and before all that was said later.
func Edited(id, edit string) string {
	id += "-edit-" + idForbid.ReplaceAllString(edit, "-")
	return id[:min(len(id), maxID)]
}

// Withdraw ends a task that nobody has begun, because there is nobody any more who asks for it: nothing is said of it. It is false, and
// nothing changes, when it was begun or has ended. ErrNotFound when there is none.
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
