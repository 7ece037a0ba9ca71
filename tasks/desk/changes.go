package desk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Changes reads the latest changes of a task's run: of the last checkpoint while it runs, and of its end. It returns
// [tasks.ErrNotFound] if there are none.
func (d *Desk) Changes(ctx context.Context, id string) (c tasks.Changes, err error) {
	if err := d.may(ctx, id, policy.See); err != nil {
		return c, err
	}
	parts, err := d.store.Log(ctx, id, tasks.DiffLog)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) { // it is gone, or on another machine
		return c, tasks.ErrNotFound
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(parts[len(parts)-1].Data, &c); err != nil {
		d.log.Warn("read changes", "run", id, "err", err) // of another version of errand
		return tasks.Changes{}, tasks.ErrNotFound
	}
	return c, nil
}
