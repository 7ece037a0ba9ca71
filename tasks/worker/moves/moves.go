// Package moves moves waiting tasks to the pool of their repository.
//
// A task waits in a queue of the pool that its repository had when it was submitted. If that has changed in
// errand.yaml, the leader moves the task while it waits, and a worker that claims it gives it back and moves it. While
// processes have different versions of errand.yaml, a task may go back and forth, which movedWait slows down.
package moves

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// movedWait is when a task that was moved can be taken, ± 50 %.
const movedWait = 500 * time.Millisecond

// ElsewhereError postpones a claimed task that another pool must run.
type ElsewhereError struct{ *tasks.ErrLater }

func (e ElsewhereError) Unwrap() error { return e.ErrLater }

// Elsewhere returns the error with which a task goes to a pool.
func Elsewhere(pool string) ElsewhereError {
	return ElsewhereError{&tasks.ErrLater{
		At: time.Now().Add(jitter.Around(movedWait)), Why: "it belongs to pool " + tasks.PoolName(pool),
	}}
}

// Mover moves tasks. It is safe for concurrent use.
type Mover struct {
	Queue  *queue.Queue
	Policy rights.Policy
	Log    *slog.Logger
}

// Move gives a waiting task to the pool of its repository. It does nothing if the task no longer waits.
func (m *Mover) Move(ctx context.Context, rec store.Record) error {
	pool, at := m.Policy.PoolOf(rec), time.Now().Add(jitter.Around(movedWait))
	if rec.At.After(at) {
		at = rec.At
	}
	err := m.Queue.Move(ctx, rec, pool, at)
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m.Log.Info("task moved", "run", rec.ID, "from", tasks.PoolName(rec.Pool), "to", tasks.PoolName(pool))
	return nil
}
