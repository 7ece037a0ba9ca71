package slack

import (
	"context"
	"fmt"
	"time"
)

// How fast a thread may ask. People stay below; two bots that answer each other do not.
const (
	askEvery = 30 * time.Second
	askBurst = 20
	sayEvery = 10 * time.Minute // that it is too fast
)

// slower is said to who asks too fast.
const slower = "This thread asks faster than I take it: I leave this out. Wait a minute, and ask again."

// pace takes a turn of the thread for a message. The error is a forbidden if there is none, empty where it is said already, or is not to be
// said. A message that begins a thread is never too much. A mention is two events, and each kind has turns of its own: there are the fewer
// mentions, so that the app_mention decides.
func (s *Source) pace(ctx context.Context, ev event, o origin, speaks bool) error {
	if s.cfg.Limiter == nil || o.ThreadTS == "" {
		return nil
	}
	ok, err := s.threadTurn(ctx, ev.Type, o, askEvery, askBurst)
	if ok || err != nil {
		return err
	}
	if speaks {
		if speaks, err = s.threadTurn(ctx, "crowded", o, sayEvery, 1); err != nil {
			return err
		}
	}
	if !speaks {
		return forbidden("")
	}
	return forbidden(slower)
}

// threadTurn takes one of a thread's turns of a kind.
func (s *Source) threadTurn(ctx context.Context, kind string, o origin, every time.Duration, burst int) (bool, error) {
	wait, err := s.cfg.Limiter.Allow(ctx, "slack/"+kind+"/"+s.threadOf(o), every, burst)
	if err != nil {
		return false, fmt.Errorf("take turn to ask: %w", err)
	}
	return wait == 0, nil
}
