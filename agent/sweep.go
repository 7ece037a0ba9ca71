package agent

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Sweep ends what dead workers of this machine have left behind, for the case that their keepers were killed as well. It kills every process
// that carries the mark of a dead worker, until none is left, and then removes the directories of their runs below Config.TempDir. Call it
// when a worker starts; it waits for at most 10 s. The error says what is left, which does not harm new runs.
//
// Processes of other users and of workers in other containers are not touched.
func (r *Runner) Sweep(ctx context.Context) error {
	processes, err := keeper.SweepDeadWorkers(ctx)
	directories, dirErr := session.Sweep(r.cfg.TempDir)
	if processes+directories > 0 {
		r.log.Warn("swept what dead workers had left", "processes", processes, "directories", directories)
	}
	return errors.Join(err, dirErr)
}
