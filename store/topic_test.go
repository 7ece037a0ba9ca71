package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// A thread goes by what its latest task has left, whatever becomes of the task, and for as long as it may have a
// session.
func TestTopic(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		topic := func() string {
			got, err := s.Threads.Topic(h.Context(), "t")
			if err != nil && !errors.Is(err, ErrNotFound) {
				h.Error(err)
			}
			return string(got)
		}
		for i, step := range []struct{ leave, want string }{{"", ""}, {`"a"`, `"a"`}, {"", `"a"`}, {`"b"`, `"b"`}} {
			rec := task(i)
			rec.Topic = json.RawMessage(step.leave)
			if _, _, err := s.Submit(h.Context(), rec); err != nil {
				h.Fatal(err)
			}
			if got := topic(); got != step.want {
				h.Errorf("after task %d: %q, want %q", i, got, step.want)
			}
		}
		again := task(1)
		again.Topic = json.RawMessage(`"again"`)
		_, _, err := s.Submit(h.Context(), again)
		h.ok(err)
		if got := topic(); got != `"b"` {
			h.Errorf("the same task once more has left %q", got)
		}
		h.lapse("errand:topic:t", 30*24*time.Hour)
		if got := topic(); got != "" {
			h.Errorf("%q was not forgotten", got)
		}
	})
}

// The open tasks of a thread should be listed in the order in which they start.
func TestOpen(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		second, first := h.submit(s, 2), h.submit(s, 1)
		c := h.claim(s, first)
		late := h.submit(s, 0)
		var ids []string
		for _, rec := range must(s.Threads.OpenTasks(h.Context(), "t")) {
			ids = append(ids, rec.ID)
		}
		if len(ids) != 3 || ids[0] != first || ids[1] != late || ids[2] != second {
			h.Errorf("open are %v", ids)
		}
		h.ok(c.End(h.Context(), json.RawMessage(`{}`)))
		if got := must(s.Threads.OpenTasks(h.Context(), "t")); len(got) != 2 {
			h.Errorf("open are %v", got)
		}
		if got := must(s.Threads.OpenTasks(h.Context(), "elsewhere")); len(got) != 0 {
			h.Errorf("open elsewhere are %v", got)
		}
	})
}

// A thread keeps the IDs of its newest 200 tasks, however long it goes on.
func TestThreadKeepsItsNewestTasks(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for n := range 250 {
			h.ok(h.rdb.ZAdd(ctx, "errand:thread:t", z(0, task(n).ID)).Err())
		}
		h.claim(s, h.submit(s, 300))
		got := must(h.rdb.ZRange(ctx, "errand:thread:t", 0, -1).Result())
		if len(got) != 200 || got[0] != task(50).ID || got[199] != task(249).ID {
			h.Errorf("%d tasks, %s to %s", len(got), got[0], got[len(got)-1])
		}
	})
}
