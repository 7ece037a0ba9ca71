package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Thread is what a thread's latest task leaves to its next one, which goes on in the same place and the same way unless it says otherwise.
type Thread struct {
	Latest  string        `json:"latest"` // ID of that task
	Repo    string        `json:"repo,omitempty"`
	Ref     string        `json:"ref,omitempty"`
	Profile agent.Profile `json:"profile,omitempty"`
	Options Options       `json:"options,omitzero"` // without Plan: what is said to a plan is that it be carried out
}

// topic is what the store keeps of it. Only where people talk is there a next one to go by it.
func topic(t Task) json.RawMessage {
	if t.Class != Interactive {
		return nil
	}
	t.Options.Plan = false
	return format.JSON(Thread{Latest: t.ID, Repo: t.Repo, Ref: t.Ref, Profile: t.Profile, Options: t.Options})
}

// Thread reads it; ErrNotFound where nobody has asked for anything, or not for long, or where it cannot be read.
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

// Open reads the tasks of a thread that have not ended, in the order in which they start. Those that are in the run of another are not
// among them, nor those that cannot be read.
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
	for _, rec := range records {
		if s := d.status(rec); s.flaw == "" {
			s.follows(len(list))
			list = append(list, s)
		}
	}
	d.noteUnable(ctx, list)
	return list, nil
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

// History returns the newest tasks of a thread in which people talk, at most n, oldest first, in
// whatever state. One whose thread nobody knows is empty.
func (d *Desk) History(ctx context.Context, thread string, n int) ([]Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, err
	}
	records, err := d.store.Threads.LatestTasks(ctx, thread, n)
	if err != nil {
		return nil, err
	}
	list := make([]Status, len(records))
	for i, rec := range records {
		if list[i], err = d.complete(ctx, rec); err != nil {
			return nil, err
		}
	}
	return list, nil
}
