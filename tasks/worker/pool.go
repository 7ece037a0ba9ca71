package worker

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A task waits in a queue of the pool that its repository had when it was submitted. If that has changed in errand.yaml,
// the leader moves the task while it waits, and a worker that claims it gives it back and moves it. While processes have
// different versions of errand.yaml, a task may go back and forth, which poolWait slows down.

// poolWait is when a task that was moved can be taken, ± 50 %.
const poolWait = 500 * time.Millisecond

// otherPool postpones a claimed task that another pool must run.
type otherPool struct{ *tasks.ErrLater }

func (o otherPool) Unwrap() error { return o.ErrLater }

func belongsTo(pool string) otherPool {
	return otherPool{&tasks.ErrLater{At: time.Now().Add(around(poolWait)), Why: "it belongs to pool " + tasks.PoolName(pool)}}
}

// move gives a waiting task to the pool of its repository. It does nothing if the task no longer waits.
func move(ctx context.Context, c *Config, rec store.Record) error {
	pool, at := c.Policy.PoolOf(rec), time.Now().Add(around(poolWait))
	if rec.At.After(at) {
		at = rec.At
	}
	switch err := c.Queue.Move(ctx, rec, pool, at); {
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	c.Log.Info("task moved", "run", rec.ID, "from", tasks.PoolName(rec.Pool), "to", tasks.PoolName(pool))
	return nil
}
