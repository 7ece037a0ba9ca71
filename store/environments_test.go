package store

import (
	"testing"
	"time"
)

func TestRebuild(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		none := must(s.Environments.Rebuilt(ctx, "acme/api"))
		if none != (Rebuild{}) || none.Name("key") != "key" || none.Outdated("key") || len(must(s.Environments.Rebuilds(ctx))) > 0 {
			h.Errorf("at first: %+v", none)
		}
		at := time.UnixMicro(1_700_000_000_000_001).UTC()
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "Acme/API", By: "Ada L.", At: at.Add(-time.Microsecond)}))
		before := must(s.Environments.Rebuilt(ctx, "acme/api"))
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "acme/api", By: "Ada L.", At: at}))
		r := must(s.Environments.Rebuilt(ctx, "acme/api"))
		if r != (Rebuild{"acme/api", "Ada L.", at}) || must(s.Environments.Rebuilds(ctx))["acme/api"] != r {
			h.Errorf("%+v", r)
		}
		if r.Outdated(r.Name("key")) || !r.Outdated("key") || !r.Outdated(before.Name("key")) {
			h.Error("what is outdated is confused with what is not")
		}
		if other := must(s.Environments.Rebuilt(ctx, "acme/web")); other != (Rebuild{}) {
			h.Errorf("another repository: %+v", other)
		}
	})
}
