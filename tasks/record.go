package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/errand-fleet/errand/store"
)

// UnreadableError means that a task's record cannot be decoded, because another version or a mistake wrote it. It
// does not affect other tasks, so a list shows such a record and continues.
type UnreadableError struct {
	ID, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("unreadable record %s: %s; remove it with redis-cli DEL errand:task:%s", e.ID, e.Why, e.ID)
}

// ReadTask decodes a stored task. The error is an UnreadableError. The task's Thread is the record's, because a task
// may have been submitted under an alias of its thread.
func ReadTask(rec store.Record) (t Task, _ error) {
	why := rec.Unreadable
	if why == "" {
		if err := json.Unmarshal(rec.Task, &t); err != nil {
			why = "its task cannot be decoded: " + err.Error()
		} else if t.ID != rec.ID || t.Source == "" {
			why = "its task has no source or another ID"
		}
	}
	if why != "" {
		return Task{}, &UnreadableError{rec.ID, why}
	}
	t.Thread, t.Fence = rec.Thread, rec.Fence
	if len(rec.RetriedBy) > 0 && json.Unmarshal(rec.RetriedBy, &t.Retrier) != nil {
		return Task{}, &UnreadableError{rec.ID, "it cannot be decoded who retried it"}
	}
	return t, nil
}

// ReadEnding decodes a task's ending; it returns nil if the task has none. The error is an UnreadableError.
func ReadEnding(rec store.Record) (e *Ending, _ error) {
	if len(rec.Ending) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(rec.Ending, &e); err != nil {
		return nil, &UnreadableError{rec.ID, "its ending cannot be decoded: " + err.Error()}
	}
	return e, nil
}

// ReadMemo decodes the value that a source stores under a name. If the value cannot be decoded, because another
// version wrote it, ReadMemo logs that and leaves v unchanged.
func ReadMemo[T any](log *slog.Logger, name string, body json.RawMessage, v *T) {
	if body == nil {
		return
	}
	var read T
	if err := json.Unmarshal(body, &read); err != nil {
		log.Warn("unreadable memo", "memo", name, "err", err)
		return
	}
	*v = read
}

// noteUnreadable records the tasks that cannot be decoded for `enqueue doctor`.
func (d *Desk) noteUnreadable(ctx context.Context, list []Status) {
	why := map[string]string{}
	for _, s := range list {
		if s.flaw != "" {
			why[s.Task.ID] = s.flaw
		}
	}
	if err := d.store.Doctor.NoteUnreadable(ctx, why); err != nil {
		d.log.Warn("note unreadable records", "err", err)
	}
}
