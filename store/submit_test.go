package store

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestSubmitIsIdempotent(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		in := task(1)
		in.At = time.Date(2001, 2, 3, 4, 5, 6, 789_000, time.UTC)
		first, created, err := s.Submit(h.Context(), in)
		if err != nil || !created {
			h.Fatalf("created %t, %v", created, err)
		}
		want := in
		want.State, want.Created = Waiting, first.Created
		if diff := cmp.Diff(want, first); diff != "" {
			h.Error(diff)
		}
		if first.Created.IsZero() {
			h.Error("no time of creation")
		}
		if diff := cmp.Diff(first, must(s.Get(h.Context(), in.ID))); diff != "" {
			h.Error(diff)
		}

		before := h.dump()
		other := in
		other.Thread, other.Task = "elsewhere", json.RawMessage(`{"other":true}`)
		again, created, err := s.Submit(h.Context(), other)
		if err != nil || created {
			h.Errorf("second submit: created %t, %v", created, err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			h.Error(diff)
		}
		if diff := cmp.Diff(before, h.dump()); diff != "" {
			h.Errorf("a second submit changed something:\n%s", diff)
		}
	})
}

func TestSubmitTwiceAtOnce(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		var wins atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, created, err := s.Submit(h.Context(), task(1)); err != nil {
					h.Error(err)
				} else if created {
					wins.Add(1)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			h.Errorf("%d submits created the record, want 1", wins.Load())
		}
	})
}

func TestSubmitRefuses(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		const good = "1700000000000001-a"
		for name, rec := range map[string]Record{
			"no ID":        {Thread: "t"},
			"no clock":     {ID: "slack-c1-1700000000000001", Thread: "t"},
			"short clock":  {ID: "17000000-a", Thread: "t"},
			"no identity":  {ID: "1700000000000001-", Thread: "t"},
			"upper case":   {ID: "1700000000000001-A", Thread: "t"},
			"path":         {ID: "1700000000000001-a/../b", Thread: "t"},
			"long":         {ID: good + strings.Repeat("a", 80-len(good)+1), Thread: "t"},
			"no thread":    {ID: good},
			"a large task": {ID: good, Thread: "t", Task: make([]byte, 1<<20+1)},
		} {
			if _, _, err := s.Submit(h.Context(), rec); err == nil {
				h.Errorf("%s was accepted", name)
			} else if errors.Is(err, ErrTooLarge) != (rec.Task != nil) {
				h.Errorf("%s: %v", name, err)
			}
		}
		if left := h.dump(); len(left) != 0 {
			h.Errorf("a refused task left %v", left)
		}
		largest := Record{
			ID: good + strings.Repeat("z", 80-len(good)), Thread: "t",
			Task: []byte(`"` + strings.Repeat("x", 1<<20-2) + `"`),
		}
		if _, created, err := s.Submit(h.Context(), largest); err != nil || !created {
			h.Errorf("the largest task: created %t, %v", created, err)
		}
		if got := must(s.Get(h.Context(), largest.ID)); len(got.Task) != 1<<20 {
			h.Errorf("the largest task came back with %d bytes", len(got.Task))
		}
	})
}

// roundTrips counts a client's requests.
type roundTrips struct{ n atomic.Int32 }

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { r.n.Add(1); return next(ctx, cmd) }
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { r.n.Add(1); return next(ctx, cmds) }
}

func TestSubmitTakesOneRoundTrip(t *testing.T) {
	onBoth(t, func(h *harness) {
		counted, trips := dial(h.T, h.url), &roundTrips{}
		h.ok(counted.Ping(h.Context()).Err()) // the handshake
		counted.AddHook(trips)
		s := h.store(Config{Redis: counted})
		for n, want := range []int32{2, 1, 1} { // the first also sends the script
			trips.n.Store(0)
			h.submit(s, n)
			if got := trips.n.Load(); got != want {
				h.Errorf("submit %d took %d round trips, want %d", n, got, want)
			}
		}
	})
}

func TestRedisClockRules(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		s := h.store(Config{})
		at := time.Date(2040, 1, 2, 3, 4, 5, 6000, time.UTC)
		h.mini.SetTime(at)
		rec := task(1)
		_, _, err := s.Submit(h.Context(), rec)
		h.ok(err)
		started := at.Add(time.Microsecond)
		h.mini.SetTime(started)
		c := h.claim(s, rec.ID)
		if c.Fence() < started.UnixMicro() {
			h.Errorf("fence %d is below the clock", c.Fence())
		}
		h.mini.SetTime(at.Add(time.Hour))
		h.ok(c.End(h.Context(), nil))
		got := must(s.Get(h.Context(), rec.ID))
		if !got.Created.Equal(at) || !got.Started.Equal(started) || !got.Ended.Equal(at.Add(time.Hour)) {
			h.Errorf("created %s, started %s, ended %s", got.Created, got.Started, got.Ended)
		}
	})
}
