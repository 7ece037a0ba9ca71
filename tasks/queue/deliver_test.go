package queue

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// away is a Redis that is gone as soon as asynq is used, if gone is set.
type away struct {
	gone  bool
	calls int
}

var errAway = errors.New("redis is away")

func (*away) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (a *away) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !a.gone || a.calls == 0 && !strings.Contains(cmd.String(), "asynq:") {
			return next(ctx, cmd)
		}
		a.calls++
		return errAway
	}
}

func (*away) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// One delivery that always fails holds up none of its batch. An outage ends the round.
func TestDeliveryThatFails(t *testing.T) {
	t.Parallel()
	client := redistest.Client(t, redistest.Start(t))
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	q, ctx := New(s, client, time.Hour), t.Context()
	var ids []string
	for _, class := range []string{tasks.Background, tasks.Interactive, tasks.Review} {
		id := tasks.NewID(time.Now(), "fake", class)
		rec := store.Record{ID: id, Thread: id, Class: class, Task: json.RawMessage("{}")}
		if _, _, err := s.Submit(ctx, rec); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	due := func() {
		t.Helper()
		for _, id := range ids {
			if err := client.ZAdd(ctx, "errand:ready", redis.Z{Member: id}).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	due()
	if err := client.Set(ctx, asynqPending(tasks.Background), "no list", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := q.Deliver(ctx); err == nil || !strings.Contains(err.Error(), "enqueue task "+ids[0]) {
		t.Errorf("the failure is %v", err)
	}
	for _, queue := range []string{tasks.Interactive, tasks.Review} {
		if n, err := client.LLen(ctx, asynqPending(queue)).Result(); err != nil || n != 1 {
			t.Errorf("%s has %d deliveries: %v", queue, n, err)
		}
	}

	due()
	lost := &away{gone: true}
	client.AddHook(lost)
	if err := q.Deliver(ctx); err == nil || lost.calls != 2 {
		t.Errorf("an outage costs %d calls: %v", lost.calls, err)
	}
}
