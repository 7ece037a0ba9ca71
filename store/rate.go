package store

import (
	"context"
	"fmt"
	"time"
)

// Allow takes one of the turns that all processes of the fleet share under a name: one every so often, and up to burst at once after a
// pause. It does not block: 0 means that the turn is taken, anything else that none was, and how long it is until the next, if nobody
// else is faster.
func (s *Memos) Allow(ctx context.Context, name string, every time.Duration, burst int) (wait time.Duration, err error) {
	r, err := s.run(ctx, "allow", name, every.Microseconds(), max(burst, 1))
	if err != nil {
		return 0, fmt.Errorf("take a turn of %s: %w", name, err)
	}
	return time.Duration(r.number(1)) * time.Microsecond, nil
}
