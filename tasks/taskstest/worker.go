// Package taskstest plays a worker for tests of the front door, the console and the command line.
package taskstest

import (
	"encoding/json"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Worker does by hand to a task what a worker does, in the same store. Errors fail the test.
type Worker struct {
	*testing.T
	Store *store.Store
	Desk  *desk.Desk
}

// Claim claims a task that has never started.
func (w Worker) Claim(id string) *store.Claim {
	w.Helper()
	rec, err := w.Store.Get(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	c, err := w.Store.Claim(w.Context(), id, rec.Delivery, "worker-1")
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// Append records an event of the agent.
func (w Worker) Append(c *store.Claim, events ...agent.Event) {
	w.Helper()
	for _, e := range events {
		if err := c.Append(w.Context(), w.JSON(e)); err != nil {
			w.Fatal(err)
		}
	}
}

// End ends a task, so that the next of its thread can start.
func (w Worker) End(c *store.Claim, e tasks.Ending) {
	w.Helper()
	if err := c.End(w.Context(), w.JSON(e)); err != nil {
		w.Fatal(err)
	}
	if err := c.Release(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// Status returns the task's current state.
func (w Worker) Status(id string) tasks.Status {
	w.Helper()
	s, err := w.Desk.Status(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// JSON returns v as it is stored.
func (w Worker) JSON(v any) json.RawMessage {
	w.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		w.Fatal(err)
	}
	return b
}
