package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/errand-fleet/errand/store"
)

// UnreadableError says that what is stored of a task cannot be read: another version wrote it, or somebody by mistake. Other tasks do not depend
// on it, so that whoever reads many shows it as such and passes over it.
type UnreadableError struct {
	ID, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("unreadable record %s: %s; remove it with redis-cli DEL errand:task:%s", e.ID, e.Why, e.ID)
}

// ReadTask decodes a stored task. The error is an UnreadableError. Its thread is the record's: a task is stored under the name that was
// asked for, which may be an alias.
func ReadTask(rec store.Record) (t Task, _ error) {
	why := rec.Unreadable
	if why == "" {
		if err := json.Unmarshal(rec.Task, &t); err != nil {
			why = "its task is no JSON of ours: " + err.Error()
		} else if t.ID != rec.ID || t.Source == "" {
			why = "its task has no source or another ID"
		}
	}
	if why != "" {
		return Task{}, &UnreadableError{rec.ID, why}
	}
	t.Thread = rec.Thread
	return t, nil
}

// ReadEnding decodes a task's ending; it returns nil if the task has none. The error is an UnreadableError.
func ReadEnding(rec store.Record) (e *Ending, _ error) {
	if len(rec.Ending) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(rec.Ending, &e); err != nil {
		return nil, &UnreadableError{rec.ID, "its ending is no JSON of ours: " + err.Error()}
	}
	return e, nil
}

// ReadMemo reads what a source remembers under a name into v. What cannot be read, because another version wrote it, is forgotten and logged: a
// thread or a pull request goes on without.
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

// standIn is shown in the place of a task that cannot be read.
func standIn(rec store.Record, why error) Task {
	return Task{ID: rec.ID, Source: sourceOf(rec.ID), Kind: "unreadable", Thread: rec.Thread, Class: rec.Class, Prompt: why.Error()}
}

// noteUnreadable lets doctor tell of those tasks that cannot be read.
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
