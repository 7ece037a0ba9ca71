package desk

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Files returns the names of the files that the agent has attached to a task, sorted. Agents choose them.
func (d *Desk) Files(ctx context.Context, id string) ([]string, error) {
	if err := d.may(ctx, id, policy.See); err != nil {
		return nil, err
	}
	return d.store.Logs(ctx, id, tasks.FileLogs)
}

// File reads a file that the agent has attached to a task. It returns [tasks.ErrNotFound] if there is none of that
// name.
func (d *Desk) File(ctx context.Context, id, name string) ([]byte, error) {
	if err := d.may(ctx, id, policy.See); err != nil {
		return nil, err
	}
	parts, err := d.store.Log(ctx, id, tasks.FileLogs+name)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) { // it is gone, or on another machine
		return nil, tasks.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return parts[len(parts)-1].Data, nil
}
