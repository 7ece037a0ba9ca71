package attempt

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
)

// faulty fails as many commands as it is set to.
type faulty struct{ next atomic.Int32 }

func (*faulty) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*faulty) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *faulty) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.next.Add(-1) >= 0 {
			err := errors.New("redis is away")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// A run whose person has answered counts again, even if Redis was unreachable at that moment.
func TestPlacesAreTakenBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client, away := f.redis(), &faulty{}
	client.AddHook(away)
	task := f.task("a", "x")
	id := f.submit(task)
	claim, err := f.open(store.Config{Redis: client}).Claim(t.Context(), id, 0, "w",
		store.Cap{Scope: "user:", Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{
		log: slog.New(slog.DiscardHandler), claim: claim, run: t.Context(), task: task,
	}
	takeBack := k.lend()
	away.next.Store(1)
	takeBack()
	if n, err := f.redis().ZCard(t.Context(), "errand:cap:user:fake/somebody").Result(); err != nil || n != 1 {
		t.Errorf("%d count, %v", n, err)
	}

	ended, end := context.WithCancel(t.Context())
	k.run = ended
	takeBack = k.lend()
	away.next.Store(1000)
	end()
	takeBack() // it ends with the run
}
