package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestLogsOfRuns(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		if _, err := s.Log(ctx, id, "log"); !errors.Is(err, ErrNotFound) {
			h.Errorf("before it ran: %v", err)
		}
		var want []string
		var first *Claim
		for n := range logParts + 2 {
			c := h.claim(s, id)
			if n == 0 {
				first = c
			}
			h.ok(c.Return(ctx, Wait{}))
			h.ok(c.SaveLog(ctx, "log", fmt.Appendf(nil, "part %d", n))) // also after the claim is lost
			h.ok(c.SaveLog(ctx, "ndjson", []byte{0, 0xff, byte(n)}))
			if n >= 2 {
				want = append(want, fmt.Sprintf("part %d", n))
			}
		}
		parts := must(s.Log(ctx, id, "log"))
		var got []string
		for i, p := range parts {
			got = append(got, string(p.Data))
			if i > 0 && p.Fence <= parts[i-1].Fence {
				h.Error("the parts are out of order")
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			h.Errorf("parts %q, want %q", got, want)
		}
		if raw := must(s.Log(ctx, id, "ndjson")); len(raw) != logParts ||
			!bytes.Equal(raw[0].Data, []byte{0, 0xff, 2}) {
			h.Errorf("the other log: %v", raw)
		}
		h.ok(first.SaveLatest(ctx, "log/b c", nil))
		h.ok(first.SaveLatest(ctx, "log/a", nil))
		if names := must(s.Logs(ctx, id, "log/")); fmt.Sprintf("%q", names) != `["a" "b c"]` {
			h.Errorf("names %q", names)
		}
		h.ok(first.SaveLog(ctx, "log", []byte("late")))
		if parts := must(s.Log(ctx, id, "log")); len(parts) != logParts || string(parts[0].Data) != "part 2" {
			h.Errorf("an old part came late: %v", parts)
		}
		if err := first.SaveLog(ctx, "log", make([]byte, maxLog+1)); !errors.Is(err, ErrTooLarge) {
			h.Errorf("a large part: %v", err)
		}
		h.ok(h.rdb.Del(ctx, "errand:task:"+id).Err())
		if err := first.SaveLog(ctx, "log", nil); !errors.Is(err, ErrNotFound) {
			h.Errorf("of a task that is gone: %v", err)
		}
		h.lapse("errand:log:"+id, 7*24*time.Hour)
	})
}

// Of a log of which only the latest part is kept, neither Redis nor the objects keep an older one.
func TestLatestLog(t *testing.T) {
	onRedis(t, func(h *harness) {
		ctx, b := h.Context(), &bucket{Dir: h.dir()}
		s := h.store(Config{Objects: b})
		id := h.submit(s, 1)
		for n := range 2 {
			c := h.claim(s, id)
			h.ok(c.SaveLog(ctx, "log", []byte("kept")))
			for range 2 {
				h.ok(c.SaveLatest(ctx, "diff", append(noise(3<<20), byte(n))))
			}
			h.ok(c.Return(ctx, Wait{}))
		}
		if parts := must(s.Log(ctx, id, "diff")); len(parts) != 1 || parts[0].Data[3<<20] != 1 {
			h.Errorf("%d parts", len(parts))
		}
		if parts := must(s.Log(ctx, id, "log")); len(parts) != 2 {
			h.Errorf("the other log has %d parts", len(parts))
		}
		s.values.deleteReplaced(ctx, time.Now().Add(replacedFor))
		if puts, deletes := b.puts.Load(), b.deletes.Load(); puts != 4 || deletes != 3 {
			h.Errorf("%d objects were written and %d deleted, want 4 and 3", puts, deletes)
		}
	})
}

// vanish removes a part of a log after it was listed and before it is read.
type vanish struct {
	passing
	remove func()
}

func (v *vanish) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "hkeys" {
			v.remove()
		}
		return err
	}
}

func TestLogIsReadWhileItIsTrimmed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Return(ctx, Wait{}))
		last := h.claim(s, c.ID())
		h.ok(c.SaveLog(ctx, "log", []byte("old")))
		h.ok(last.SaveLog(ctx, "log", []byte("new")))
		reader := dial(h.T, h.url)
		reader.AddHook(&vanish{remove: func() { h.rdb.HDel(ctx, "errand:log:"+c.ID(), c.fence+" log") }})
		parts, err := h.store(Config{Redis: reader}).Log(ctx, c.ID(), "log")
		if h.ok(err); len(parts) != 1 || string(parts[0].Data) != "new" || parts[0].Fence != last.Fence() {
			h.Errorf("parts: %v", parts)
		}
	})
}
