// Package sources finds the source of a stored task.
package sources

import (
	"fmt"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
)

// Set is the sources that a worker is set up for. It is safe for concurrent use.
type Set struct{ All []tasks.Source }

// Names returns the names of the sources.
func (s *Set) Names() []string {
	names := make([]string, len(s.All))
	for i, one := range s.All {
		names[i] = one.Name()
	}
	return names
}

// Read decodes the task of a record and returns its source. The error is a *[record.UnreadableError], or wraps
// [tasks.ErrNotHere] if the worker is not set up for the source; then the task is valid.
func (s *Set) Read(rec store.Record) (tasks.Task, tasks.Source, error) {
	t, err := record.Task(rec)
	if err != nil {
		return t, nil, err
	}
	for _, one := range s.All {
		if one.Name() == t.Source {
			return t, one, nil
		}
	}
	return t, nil, fmt.Errorf("task %s is from source %q: %w", t.ID, t.Source, tasks.ErrNotHere)
}
