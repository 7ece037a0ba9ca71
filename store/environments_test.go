package store

import (
	"testing"
	"time"
)

func TestRebuild(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		rebuilt := func(repo string) Rebuild { return must(s.Environments.RebuildOf(ctx, repo)) }
		none := rebuilt("acme/api")
		if none != (Rebuild{}) || none.Name("key") != "key" || none.Outdated("key") ||
			len(must(s.Environments.Rebuilds(ctx))) > 0 {
			h.Errorf("at first: %+v", none)
		}
		at := time.UnixMicro(1_700_000_000_000_001).UTC()
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "Acme/API", By: "Ada L.", At: at.Add(-time.Microsecond)}))
		before := rebuilt("acme/api")
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "acme/api", By: "Ada L.", At: at}))
		r := rebuilt("acme/api")
		if r != (Rebuild{Repo: "acme/api", By: "Ada L.", At: at}) {
			h.Errorf("%+v", r)
		}
		if r.Outdated(r.Name("key")) || !r.Outdated("key") || !r.Outdated(before.Name("key")) {
			h.Error("what is outdated is confused with what is not")
		}
		if other := rebuilt("acme/web"); other != (Rebuild{}) {
			h.Errorf("another repository: %+v", other)
		}
		h.ok(h.rdb.HSet(ctx, "errand:rebuilds", "key", "1 Bo").Err()) // of an earlier release
		h.ok(s.Environments.Sweep(ctx))
		h.ok(s.Environments.Sweep(ctx))
		if all := must(s.Environments.Rebuilds(ctx)); len(all) != 1 || all.Of("ACME/api") != r {
			h.Errorf("all: %+v", all)
		}
	})
}
