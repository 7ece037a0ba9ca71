package slack

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// startDue starts every so often, until ctx ends, the requests whose authors have had the time to choose.
func (s *Source) startDue(ctx context.Context, d *tasks.Desk) {
	tick := time.NewTicker(s.lookEvery)
	defer tick.Stop()
	for {
		for s.startNext(ctx, d) {
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// startNext starts one. It is false when there is none, or Redis is away. What cannot be started now comes again.
func (s *Source) startNext(ctx context.Context, d *tasks.Desk) bool {
	limited, cancel := context.WithTimeout(ctx, pressLimit)
	defer cancel()
	id, body, err := s.cfg.Shelf.TakeShelved(limited)
	if err != nil || id == "" {
		if err != nil && ctx.Err() == nil {
			s.log.Warn("look for undecided requests", "err", err)
		}
		return false
	}
	var r shelved
	var o origin
	if err = json.Unmarshal(body, &r); err == nil {
		o, err = originOf(r.Task)
	}
	if err != nil {
		s.log.Error("drop undecided request", "run", id, "err", errors.Join(err, s.cfg.Shelf.Unshelve(limited, id)))
		return true
	}
	receipt, err := s.decide(limited, d, r, r.Favourite)
	input, refused := errors.AsType[*tasks.InputError](err)
	switch {
	case refused:
		s.tell(ctx, o, input.Sentence)
	case err != nil:
		s.log.Warn("start undecided request", "run", id, "err", err)
	case receipt.New:
		s.tell(ctx, o, begun(r.Favourite)+" "+otherwise)
	}
	return true
}
