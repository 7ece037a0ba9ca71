// Package record reads what the store keeps of a task: the task, its ending, and why it waits or was stopped.
package record

import (
	"encoding/json"
	"fmt"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// MaxCrashes is how many workers may die while they run one task. With the last, the task ends.
const MaxCrashes = 3

// UnreadableError means that a task's record cannot be decoded, because another version or a mistake wrote it. It
// does not affect other tasks, so a list shows such a record and continues.
type UnreadableError struct {
	ID, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("unreadable record %s: %s; remove it with redis-cli DEL errand:task:%s", e.ID, e.Why, e.ID)
}

// Task decodes a stored task. The error is an UnreadableError. The task's Thread is the record's, because a task
// may have been submitted under an alias of its thread.
func Task(rec store.Record) (t tasks.Task, _ error) {
	why := rec.Unreadable
	if why == "" {
		if err := json.Unmarshal(rec.Task, &t); err != nil {
			why = "its task cannot be decoded: " + err.Error()
		} else if t.ID != rec.ID || t.Source == "" {
			why = "its task has no source or another ID"
		}
	}
	if why != "" {
		return tasks.Task{}, &UnreadableError{rec.ID, why}
	}
	t.Thread, t.Fence = rec.Thread, rec.Fence
	if len(rec.RetriedBy) > 0 && json.Unmarshal(rec.RetriedBy, &t.Retrier) != nil {
		return tasks.Task{}, &UnreadableError{rec.ID, "it cannot be decoded who retried it"}
	}
	return t, nil
}

// Ending decodes a task's ending; it returns nil if the task has none. The error is an UnreadableError.
func Ending(rec store.Record) (e *tasks.Ending, _ error) {
	if len(rec.Ending) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(rec.Ending, &e); err != nil {
		return nil, &UnreadableError{rec.ID, "its ending cannot be decoded: " + err.Error()}
	}
	return e, nil
}
