package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// topic returns the thread state that the store keeps for a task. Only threads with conversations have one.
func topic(t tasks.Task) json.RawMessage {
	if t.Class != tasks.Interactive {
		return nil
	}
	t.Options.Plan = false
	return format.JSON(tasks.Thread{
		Latest: t.ID, Repo: t.Repo, Also: t.Also, Ref: t.Ref, Profile: t.Profile, Options: t.Options,
	})
}

// Thread returns the state of a thread. It returns ErrNotFound if the thread has no tasks, has expired or cannot be
// decoded.
func (d *Desk) Thread(ctx context.Context, name string) (tasks.Thread, error) {
	var t tasks.Thread
	name, err := d.store.Threads.Resolve(ctx, name)
	if err != nil {
		return t, fmt.Errorf("read thread: %w", err)
	}
	stored, err := d.store.Threads.Topic(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return t, fmt.Errorf("read thread %s: %w", name, tasks.ErrNotFound)
	}
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return t, fmt.Errorf("read thread %s: %w", name, err)
	}
	if err == nil {
		err = json.Unmarshal(stored, &t)
	}
	if err == nil {
		return t, nil
	}
	d.log.Warn("thread goes on as a new one: what its latest task left cannot be read", "thread", name, "err", err)
	return tasks.Thread{}, fmt.Errorf("read thread %s: %w", name, tasks.ErrNotFound)
}

// Open returns the tasks of a thread that have not ended, in the order in which they start. It leaves out absorbed
// tasks and those that cannot be decoded.
func (d *Desk) Open(ctx context.Context, thread string) ([]tasks.Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("read thread: %w", err)
	}
	records, err := d.store.Threads.OpenTasks(ctx, thread)
	if err != nil {
		return nil, err
	}
	var list []tasks.Status
	var readable []store.Record
	for _, rec := range d.visible(ctx, records) {
		if s := d.status(rec); s.Unreadable == "" {
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
func (d *Desk) Latest(ctx context.Context, t tasks.Thread) (tasks.Status, error) {
	if t.Latest == "" {
		return tasks.Status{}, tasks.ErrNotFound
	}
	st, err := d.Status(ctx, t.Latest)
	if err == nil && st.Into != "" {
		return d.Status(ctx, st.Into)
	}
	return st, err
}

// History returns the newest n tasks of a conversation in any state, oldest first. An unknown thread yields an empty
// list.
func (d *Desk) History(ctx context.Context, thread string, n int) ([]tasks.Status, error) {
	thread, err := d.store.Threads.Resolve(ctx, thread)
	if err != nil {
		return nil, err
	}
	records, err := d.store.Threads.LatestTasks(ctx, thread, n)
	if err != nil {
		return nil, err
	}
	records = d.visible(ctx, records)
	list := make([]tasks.Status, len(records))
	for i, rec := range records {
		if list[i], err = d.complete(ctx, rec); err != nil {
			return nil, err
		}
	}
	return list, nil
}
