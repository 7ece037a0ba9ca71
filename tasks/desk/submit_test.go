package desk

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/redis/go-redis/v9"
)

// trips counts how often a client waits for Redis.
type trips struct{ n atomic.Int64 }

func (t *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (t *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmd)
	}
}

func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmds)
	}
}

// A front door answers only when a task is stored and enqueued: one exchange for each, and none for anything else.
func TestSubmitTakesTwoRoundTrips(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client, count := f.redis(), &trips{}
	client.AddHook(count)
	st := f.open(store.Config{Redis: client})
	desk := New(st, queue.New(st, client, 0), f.policy, nil)
	submit := func(thread string) string {
		t.Helper()
		task := f.task(thread, "do it")
		r, err := desk.Submit(t.Context(), task)
		if err != nil || !r.New {
			t.Fatalf("new %t, %v", r.New, err)
		}
		return task.ID
	}
	submit("a") // teaches Redis the scripts and the queue's name
	if err := f.store.Threads.Alias(t.Context(), "fake/b", "fake/a"); err != nil {
		t.Fatal(err)
	}
	for _, thread := range []string{"c", "a", "b"} { // a new one, one with a task, an alias of it
		before := count.n.Load()
		id := submit(thread)
		if n := count.n.Load() - before; n > 2 {
			t.Errorf("%d round trips for a task of thread %s", n, thread)
		}
		want := map[string]string{"c": "fake/c", "a": "fake/a", "b": "fake/a"}[thread]
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.Task.Thread != want {
			t.Errorf("the task is in thread %s, want %s (%v)", s.Task.Thread, want, err)
		}
	}
}

// A sender that did not hear that its task is stored submits it again, perhaps after the policy has changed.
func TestSubmitFindsATaskThatIsRefusedNow(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	known, other := f.task("a", "do it"), f.task("b", "do it")
	known.Repo, other.Repo = "acme/api", "acme/api"
	f.submit(known)
	f.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{}, false }
	desk := New(f.store, f.queue, f.policy, nil)
	if r, err := desk.Submit(t.Context(), known); err != nil || r != (Receipt{ID: known.ID}) {
		t.Errorf("%+v, %v", r, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := desk.Submit(gone, known); !errors.Is(err, context.Canceled) {
		t.Errorf("without an answer of Redis: %v", err)
	}
	if r, err := desk.Submit(t.Context(), other); !strings.Contains(sentence(err), "is not one errand works on") {
		t.Errorf("%+v, %v", r, err)
	}
}
