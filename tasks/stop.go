package tasks

import (
	"context"
	"slices"
	"time"
)

// StopAll cancels, on behalf of by, what is under way in a thread and was asked for, for the last time, before the task with that ID would have
// been: the word to stop may come late, and often. Those that wait go first, so that none of them starts meanwhile. governs says of each whether by may have it
// stopped; spared are those of which he may not.
func (d *Desk) StopAll(ctx context.Context, thread, before, by string, governs func(Task) bool) (stopped, spared int, err error) {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return 0, 0, err
	}
	for _, st := range slices.Backward(open) {
		switch {
		case st.Task.ID > before, st.Retried.After(Born(before)):
		case !governs(st.Task):
			spared++
		default:
			if _, err := d.Cancel(ctx, st.Task.ID, by); err != nil {
				return stopped, spared, err
			}
			stopped++
		}
	}
	return stopped, spared, nil
}

// Latest is a thread's latest task, or the one whose run has taken it up. ErrNotFound where there is none any more.
func (d *Desk) Latest(ctx context.Context, t Thread) (Status, error) {
	if t.Latest == "" {
		return Status{}, ErrNotFound
	}
	st, err := d.Status(ctx, t.Latest)
	if err == nil && st.Into != "" {
		return d.Status(ctx, st.Into)
	}
	return st, err
}

// Repeat is Retry for a word that may come late, and often: what has been tried again since it was said is left alone, as ErrNotEnded.
func (d *Desk) Repeat(ctx context.Context, st Status, said time.Time) error {
	if st.Ending == nil || st.Ended.After(said) {
		return ErrNotEnded
	}
	_, err := d.Retry(ctx, st.Task.ID)
	return err
}
