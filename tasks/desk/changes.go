package desk

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// maxUnpacked bounds the JSON of changes, in bytes: a character has at most six.
const maxUnpacked = 16 << 20

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
	z, err := gzip.NewReader(bytes.NewReader(parts[len(parts)-1].Data))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxUnpacked)).Decode(&c)
	}
	if err != nil {
		d.log.Warn("read changes", "run", id, "err", err) // of another version of errand
		return tasks.Changes{}, tasks.ErrNotFound
	}
	return c, nil
}
