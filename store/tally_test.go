package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTally(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		hours := must(s.Tally.Hours(ctx, 48))
		if len(hours) != 48 || hours[47].Start.Sub(hours[0].Start) != 47*time.Hour ||
			hours[47].Start != h.today().Add(12*time.Hour) {
			h.Fatalf("%d hours, from %v to %v", len(hours), hours[0].Start, hours[47].Start)
		}
		for i, ending := range []string{
			`{"kind":"answered","by":"x"}`, `{"kind":"timed_out"}`, `"of another version"`,
		} {
			id := h.scoped(s, i+1)
			claim := h.claim(s, id)
			h.ok(claim.End(ctx, []byte(ending)))
		}
		ended, waited, n := map[string]int{}, Distribution{}, 0
		for _, hour := range must(s.Tally.Hours(ctx, 1)) {
			for kind, n := range hour.Ended {
				ended[kind] += n
			}
			for _, d := range hour.Waited {
				waited = waited.Add(d)
			}
		}
		if diff := cmp.Diff(map[string]int{"answered": 1, "timed_out": 1, "failed": 1}, ended); diff != "" {
			h.Error(diff)
		}
		for _, count := range waited {
			n += count
		}
		if n != 3 || waited.Quantile(1) > time.Minute {
			h.Errorf("waited %v, want 3 of a few seconds at most", waited)
		}
	})
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	d := Distribution{5, 0, 0, 4}.Add(Distribution{0, 0, 0, 0, 1})
	for share, want := range map[float64]time.Duration{
		0: time.Second, 0.5: time.Second, 0.6: 8 * time.Second, 0.95: 16 * time.Second, 1: 16 * time.Second,
	} {
		if got := d.Quantile(share); got != want {
			t.Errorf("%v: %v, want %v", share, got, want)
		}
	}
	if got := (Distribution{}).Quantile(0.5); got != 0 {
		t.Errorf("nothing counted: %v", got)
	}
}
