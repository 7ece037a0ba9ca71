package taskstest

import (
	"context"
	"time"

	"github.com/errand-fleet/errand/tasks/intake"
)

// SlowTurns is a limiter whose turns come back so slowly that none does during a test.
type SlowTurns struct{ intake.Limiter }

// Allow implements [intake.Limiter].
func (l SlowTurns) Allow(ctx context.Context, name string, every time.Duration, burst int) (time.Duration, error) {
	return l.Limiter.Allow(ctx, name, every+time.Hour, burst)
}
