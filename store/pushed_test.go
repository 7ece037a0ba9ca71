package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPushed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{SessionTTL: time.Hour})
		c := h.claim(s, h.submit(s, 1))
		if got := must(s.Threads.Pushed(ctx, "acme/api", "errand/x")); len(got) > 0 {
			h.Errorf("pushed before anything was: %q", got)
		}
		for _, commit := range []string{"a", "b", "a"} { // the push of a failed and is retried
			h.ok(c.Pushing(ctx, "acme/api", "errand/x", commit))
		}
		h.ok(c.Pushing(ctx, "acme/api", "errand/y", "c"))
		h.ok(c.Pushing(ctx, "acme/web", "errand/x", "d"))
		if diff := cmp.Diff([]string{"b", "a"}, must(s.Threads.Pushed(ctx, "acme/api", "errand/x"))); diff != "" {
			h.Error(diff)
		}
		for i := range maxPushed {
			h.ok(c.Pushing(ctx, "acme/api", "errand/x", fmt.Sprint(i)))
		}
		if got := must(s.Threads.Pushed(ctx, "acme/api", "errand/x")); len(got) != maxPushed || got[0] != "0" {
			h.Errorf("remembered: %q", got)
		}
		h.lapse("errand:pushed:acme/api errand/x", time.Hour)
		if got := must(s.Threads.Pushed(ctx, "acme/api", "errand/x")); len(got) > 0 {
			h.Errorf("not expired: %q", got)
		}
	})
}
