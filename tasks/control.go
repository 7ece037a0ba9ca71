package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The causes of a cancel, as the store records them.
const (
	causeUser  = "user"  // a person cancelled the task
	causeNewer = "newer" // something newer made the task pointless; By is the sentence that says what
)

// Cancellation is the cause that ends the context of a run that was asked to stop, as the task's record states it.
type Cancellation struct{ By, Cause string }

func CancellationOf(rec store.Record) Cancellation {
	return Cancellation{By: rec.CancelBy, Cause: rec.CancelCause}
}

func (c Cancellation) Error() string { return fmt.Sprintf("cancelled by %s", c.By) }

// Ending returns the ending of a task that was asked to stop.
func (c Cancellation) Ending() Ending {
	if c.Cause == causeNewer {
		return Ending{Kind: Superseded, Reason: c.By, At: time.Now()}
	}
	return Ending{Kind: Cancelled, By: c.By, At: time.Now()}
}

// StopAll cancels, on behalf of by, the unfinished tasks of a thread that were requested, or last retried, before the
// time of the ID before. So a stop command can arrive late and repeatedly. Waiting tasks are cancelled first, so that
// none of them starts in the meantime, and so are the messages that the run absorbed: those that the agent has not read
// would start when the run stops. governs reports whether by may stop a task; spared counts the tasks for which it
// returns false.
func (d *Desk) StopAll(
	ctx context.Context, thread, before, by string, governs func(Task) bool,
) (stopped, spared int, err error) {
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
			absorbed, err := d.store.Absorbed(ctx, st.Task.ID)
			if err != nil {
				return stopped, spared, err
			}
			for _, rec := range absorbed {
				if rec.ID > before || rec.Retried.After(Born(before)) || !governs(d.status(rec).Task) {
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
func (d *Desk) Repeat(ctx context.Context, st Status, said time.Time) error {
	if st.Ending == nil || st.Ended.After(said) {
		return ErrNotEnded
	}
	_, err := d.Retry(ctx, st.Task.ID)
	return err
}

// Supersede ends the waiting and running tasks of a thread for which outdated returns true, because something newer
// made them pointless. reason is one sentence for people. It can be called again and then ends the rest. Use it for
// automatic work only: it does not look at absorbed tasks.
func (d *Desk) Supersede(ctx context.Context, thread, reason string, outdated func(Task) bool) error {
	open, err := d.Open(ctx, thread)
	if err != nil {
		return fmt.Errorf("supersede tasks: %w", err)
	}
	for _, st := range slices.Backward(open) { // backwards, because the end of the first would start the next
		if !outdated(st.Task) {
			continue
		}
		if err := d.stop(ctx, st.Task.ID, reason, causeNewer); err != nil && !errors.Is(err, ErrNotFound) {
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
		if _, err := EndWaiting(ctx, d.store, rec.ID, CancellationOf(rec).Ending()); err != nil {
			return fmt.Errorf("cancel task %s: %w", rec.ID, err)
		}
	}
	d.log.Info("task cancelled", "run", id, "by", by, "cause", cause)
	return nil
}

// EndWaiting ends a waiting task and the tasks that its earlier run absorbed. It returns false if the task is not
// waiting.
func EndWaiting(ctx context.Context, s *store.Store, id string, e Ending) (bool, error) {
	with, err := s.Absorbed(ctx, id)
	if err != nil {
		return false, err
	}
	for _, rec := range with {
		e.Covers = append(e.Covers, rec.ID)
	}
	return s.EndWaiting(ctx, id, format.JSON(e))
}

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
func (d *Desk) Amend(ctx context.Context, t Task, edit Edit) (done Amendment, _ error) {
	var err error
	if t.Login, err = loginOf(ctx, d, t); err != nil {
		return 0, err
	}
	t.Partial = VisitorOf(ctx).Partial()
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

// Withdraw ends a task that has not started, because its message was deleted. No message is posted. It may be repeated.
// It returns false and changes nothing if the task has started or ended otherwise, and ErrNotFound if it does not
// exist.
func (d *Desk) Withdraw(ctx context.Context, id string) (bool, error) {
	done, err := d.store.Withdraw(ctx, id, format.JSON(Ending{Kind: Withdrawn, At: time.Now()}))
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
	e, err := ReadEnding(rec)
	return err == nil && e != nil && e.Kind == Withdrawn, nil
}

// Thread is what a thread's latest task passes on to its next one, which by default works in the same place with the
// same options.
type Thread struct {
	Latest  string        `json:"latest"` // ID of the latest task
	Repo    string        `json:"repo,omitempty"`
	Also    []string      `json:"repos,omitempty"`
	Ref     string        `json:"ref,omitempty"`
	Profile agent.Profile `json:"profile,omitempty"`
	Options Options       `json:"options,omitzero"` // without Plan, because a reply to a plan asks to carry it out
}

// topic returns the thread state that the store keeps for a task. Only threads with conversations have one.
func topic(t Task) json.RawMessage {
	if t.Class != Interactive {
		return nil
	}
	t.Options.Plan = false
	return format.JSON(Thread{
		Latest: t.ID, Repo: t.Repo, Also: t.Also, Ref: t.Ref, Profile: t.Profile, Options: t.Options,
	})
}

// Thread returns the state of a thread. It returns ErrNotFound if the thread has no tasks, has expired or cannot be
// decoded.
func (d *Desk) Thread(ctx context.Context, name string) (Thread, error) {
	var t Thread
	name, err := d.store.Threads.Resolve(ctx, name)
	if err != nil {
		return t, fmt.Errorf("read thread: %w", err)
	}
	stored, err := d.store.Threads.Topic(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return t, fmt.Errorf("read thread %s: %w", name, ErrNotFound)
	case err == nil:
		if err = json.Unmarshal(stored, &t); err == nil {
			return t, nil
		}
	case !errors.Is(err, store.ErrDamaged):
		return t, fmt.Errorf("read thread %s: %w", name, err)
	}
	d.log.Warn("thread goes on as a new one: what its latest task left cannot be read", "thread", name, "err", err)
	return Thread{}, fmt.Errorf("read thread %s: %w", name, ErrNotFound)
}

// Open returns the tasks of a thread that have not ended, in the order in which they start. It leaves out absorbed
// tasks and those that cannot be decoded.
func (d *Desk) Open(ctx context.Context, thread string) ([]Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("read thread: %w", err)
	}
	records, err := d.store.Threads.OpenTasks(ctx, thread)
	if err != nil {
		return nil, err
	}
	var list []Status
	var readable []store.Record
	for _, rec := range d.policy.People.filterVisible(ctx, records) {
		if s := d.status(rec); s.flaw == "" {
			list, readable = append(list, s), append(readable, rec)
		}
	}
	if err := d.notePlaces(ctx, readable, list); err != nil {
		return nil, err
	}
	d.noteUnable(ctx, list)
	return list, nil
}

// Latest returns a thread's latest task, or the one whose run absorbed it. It returns ErrNotFound if the thread has
// no task.
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

// History returns the newest n tasks of a conversation in any state, oldest first. An unknown thread yields an empty
// list.
func (d *Desk) History(ctx context.Context, thread string, n int) ([]Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, err
	}
	records, err := d.store.Threads.LatestTasks(ctx, thread, n)
	if err != nil {
		return nil, err
	}
	records = d.policy.People.filterVisible(ctx, records)
	list := make([]Status, len(records))
	for i, rec := range records {
		if list[i], err = d.complete(ctx, rec); err != nil {
			return nil, err
		}
	}
	return list, nil
}
