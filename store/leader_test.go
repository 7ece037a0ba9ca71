package store

import (
	"slices"
	"testing"
	"time"
)

func TestLeader(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s, other := h.Context(), h.store(Config{}), h.store(Config{Redis: dial(h.T, h.url)})
		a, b := s.Leader("x", time.Minute), other.Leader("x", time.Minute)
		first := must(a.Lead(ctx))
		if first == "" || must(b.Lead(ctx)) != "" {
			h.Error("want one leader of two")
		}
		if term := must(a.Lead(ctx)); term != first {
			h.Errorf("term %s after %s, without interruption", term, first)
		}
		if must(other.Leader("y", time.Minute).Lead(ctx)) == "" {
			h.Error("leads of different names exclude each other")
		}
		h.lapse("errand:leader:x", time.Minute)
		second := must(b.Lead(ctx))
		if second == "" || second == first || must(a.Lead(ctx)) != "" {
			h.Errorf("term %q after the lead was free, before %q", second, first)
		}
		h.ok(a.Resign(ctx))
		if must(b.Lead(ctx)) != second {
			h.Error("a process that does not lead has ended the lead")
		}
		h.ok(b.Resign(ctx))
		if must(a.Lead(ctx)) == "" {
			h.Error("no leader after a resignation")
		}
	})
}

// Redis measures how long a claim is missing in a leader's term, and starts over if it returns.
func TestSilent(t *testing.T) {
	onMini(t, func(h *harness) {
		ctx, s, at := h.Context(), h.store(Config{}), time.Unix(2e9, 0)
		h.mini.SetTime(at)
		later := func(d time.Duration) { at = at.Add(d); h.mini.SetTime(at) }
		c, lives, odd := h.claim(s, h.submit(s, 1)), h.claim(s, h.submitTo(s, 2, "lives")), h.submitTo(s, 3, "odd")
		spoilt["another type"](h, odd)
		silent := func(why, term string, want time.Duration) {
			h.Helper()
			h.ok(h.refresh(lives)) // regardless of the other one
			var runs []LiveRecord
			for id, fence := range map[string]int64{c.ID(): c.Fence(), lives.ID(): lives.Fence(), odd: 1} {
				runs = append(runs, LiveRecord{Record: Record{ID: id, Fence: fence}})
			}
			got, err := s.Silent(ctx, term, runs...)
			h.ok(err)
			wanted := map[string]time.Duration{c.ID(): want}
			if want < 0 {
				clear(wanted)
			}
			h.same(why, got, wanted)
		}
		silent("of a run with its claim", "1", -1)
		h.crash(c)
		silent("seen for the first time", "1", 0)
		later(time.Hour)
		silent("an hour later", "1", time.Hour)
		silent("in another term", "2", 0)
		later(time.Second)
		silent("a second later", "2", time.Second)
		h.ok(h.refresh(c))
		h.crash(c)
		silent("after it lived", "2", 0)
		h.takeover(s, c)
		silent("of a task that waits", "2", -1)
	})
}

func TestRunningAndLiveAfter(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		runs := func(want ...string) {
			h.Helper()
			var got []string
			for _, rec := range must(s.Running(ctx)) {
				got = append(got, rec.ID)
			}
			if !slices.Equal(got, want) {
				h.Errorf("running: %v, want %v", got, want)
			}
		}
		ids := []string{h.submitTo(s, 1, "a"), h.submitTo(s, 2, "b"), h.submitTo(s, 3, "c"), h.submitTo(s, 4, "d")}
		runs()
		a, b, c := h.claim(s, ids[0]), h.claim(s, ids[1]), h.claim(s, ids[2])
		runs(ids[:3]...)
		h.ok(a.Return(ctx, Wait{}))
		h.ok(b.End(ctx, nil))
		runs(ids[2])
		h.crash(c)
		h.takeover(s, c)
		runs()
		var walk []string
		for after, rounds := "", 0; rounds == 0 || after != ""; rounds++ {
			live, next, err := s.LiveAfter(ctx, after, 2)
			h.ok(err)
			for _, rec := range live {
				walk = append(walk, rec.ID)
			}
			after = next
		}
		if want := []string{ids[0], ids[2], ids[3]}; !slices.Equal(walk, want) {
			h.Errorf("walk: %v, want %v", walk, want)
		}
	})
}
