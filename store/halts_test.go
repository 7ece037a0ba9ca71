package store

import (
	"testing"
	"time"
)

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
			h.ok(s.Cordoned.Add(ctx, name, Halt{By: "Ada"}))
		}
		beat("watch", time.Minute)
		beat("cut-off", 50*time.Minute)
		if got := must(s.Cordoned.All(ctx)); len(got) != 3 {
			h.Errorf("within the hour: %v", got)
		}
		beat("watch", 20*time.Minute)
		got := must(s.Cordoned.All(ctx))
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
		h.ok(s.Cordoned.Add(ctx, "a", Halt{By: "Ada"}))
		h.ok(s.Cordoned.Add(ctx, "h2", Halt{}))
		if !cordoned(a) || !cordoned(b) || cordoned(Worker{ID: "c", Host: "h1"}) ||
			!cordoned(Worker{ID: "d", Host: "h2"}) {
			h.Error("heartbeats do not say what is cordoned")
		}
		list := must(s.Workers.List(ctx))
		if list[0].Cordon == nil || list[0].Cordon.By != "Ada" || list[1].Cordon == nil || list[2].Cordon != nil {
			h.Errorf("%+v", list)
		}
		if !must(s.Cordoned.Remove(ctx, "a")) || must(s.Cordoned.Remove(ctx, "a")) || cordoned(a) {
			h.Error("not uncordoned")
		}
	})
}
