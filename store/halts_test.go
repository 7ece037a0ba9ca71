package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPause(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(s.Halts.Pause(ctx, "review", "Ada L."))
		h.ok(s.Halts.Pause(ctx, "review", "Ben"))
		h.ok(s.Halts.Pause(ctx, "background", ""))
		got := must(s.Halts.Paused(ctx))
		if diff := cmp.Diff(map[string]Halt{"review": {By: "Ada L."}, "background": {}}, got,
			cmpopts.IgnoreFields(Halt{}, "Since")); diff != "" {
			h.Error(diff)
		}
		for class, halt := range got {
			if d := time.Since(halt.Since); d < -2*time.Second || d > time.Minute {
				h.Errorf("%s is paused since %v", class, halt.Since)
			}
		}
		for range 2 {
			h.ok(s.Halts.Resume(ctx, "review"))
		}
		if got := must(s.Halts.Paused(ctx)); len(got) != 1 {
			h.Errorf("still paused: %v", got)
		}
	})
}

// The cordon of a worker goes an hour after the worker. That of a host stays, and so does that of a worker which was
// only cut off.
func TestCordonOfTheDead(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		ctx, s, at := h.Context(), h.store(Config{}), time.Date(2040, 1, 2, 0, 0, 0, 0, time.UTC)
		beat := func(id string, after time.Duration) {
			h.Helper()
			at = at.Add(after)
			h.mini.SetTime(at)
			must(s.Workers.Beat(ctx, Worker{ID: id, Host: "host-of-" + id}))
		}
		for _, id := range []string{"dead", "cut-off", "watch"} {
			beat(id, 0)
		}
		for _, name := range []string{"dead", "cut-off", "host-of-dead"} {
			h.ok(s.Halts.Cordon(ctx, name, "Ada"))
		}
		beat("watch", time.Minute)
		beat("cut-off", 50*time.Minute)
		if got := must(s.Halts.Cordoned(ctx)); len(got) != 3 {
			h.Errorf("within the hour: %v", got)
		}
		beat("watch", 20*time.Minute)
		got := must(s.Halts.Cordoned(ctx))
		if _, there := got["dead"]; there || len(got) != 2 {
			h.Errorf("after the hour: %v", got)
		}
	})
}

func TestCordon(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		a, b := Worker{ID: "a", Host: "h1"}, Worker{ID: "b", Host: "h2"}
		cordoned := func(w Worker) bool { return must(s.Workers.Beat(ctx, w)).Cordoned }
		if cordoned(a) || cordoned(b) {
			h.Error("cordoned at first")
		}
		h.ok(s.Halts.Cordon(ctx, "a", "Ada"))
		h.ok(s.Halts.Cordon(ctx, "a", "Ben"))
		h.ok(s.Halts.Cordon(ctx, "h2", ""))
		if !cordoned(a) || !cordoned(b) || cordoned(Worker{ID: "c", Host: "h1"}) ||
			!cordoned(Worker{ID: "d", Host: "h2"}) {
			h.Error("heartbeats do not say what is cordoned")
		}
		list := must(s.Workers.List(ctx))
		if list[0].Cordon == nil || list[0].Cordon.By != "Ada" || list[1].Cordon == nil || list[2].Cordon != nil {
			h.Errorf("%+v", list)
		}
		if !must(s.Halts.Uncordon(ctx, "a")) || must(s.Halts.Uncordon(ctx, "a")) || cordoned(a) {
			h.Error("not uncordoned")
		}
		if got := must(s.Halts.Cordoned(ctx)); len(got) != 1 || got["h2"].Since.IsZero() {
			h.Errorf("cordoned: %v", got)
		}
	})
}
