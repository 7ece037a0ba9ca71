package store

import (
	"slices"
	"testing"
)

// A thread's tasks are those that run or wait there, in this order, and none that has ended or is another thread's.
func TestQueued(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		var want []string
		for n := range 4 {
			rec := task(n)
			rec.Thread = map[bool]string{true: "elsewhere", false: "here"}[n == 3]
			_, _, err := s.Submit(h.Context(), rec)
			h.ok(err)
			want = append(want, rec.ID)
		}
		c := h.claim(s, want[0])
		h.ok(c.End(h.Context(), nil))
		h.ok(c.Release(h.Context()))
		h.claim(s, want[1])
		var got []string
		for _, rec := range must(s.Queued(h.Context(), "here")) {
			got = append(got, rec.ID+" "+string(rec.State))
		}
		if !slices.Equal(got, []string{want[1] + " running", want[2] + " waiting"}) {
			h.Errorf("queued: %v", got)
		}
		if got := must(s.Queued(h.Context(), "nowhere")); len(got) != 0 {
			h.Errorf("nowhere: %v", got)
		}
	})
}
