package store

import (
	"testing"
	"time"
)

func TestRebuild(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		rebuilt := func(repo string) Rebuild { return must(s.Environments.RebuildOf(ctx, repo, "key")) }
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

		later := at.Add(time.Hour)
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "acme/api", Key: "key", By: "Bo", At: later}))
		all := must(s.Environments.Rebuilds(ctx))
		if one := all.Of("acme/api", r.Name("key")); one != (Rebuild{"acme/api", "key", "Bo", later}) ||
			one != rebuilt("acme/api") || !one.Outdated(r.Name("key")) || one.Outdated(one.Name("key")) {
			h.Errorf("of one environment: %+v", one)
		}
		if same := all.Of("acme/api", r.Name("other")); same != r {
			h.Errorf("another environment of the repository: %+v", same)
		}
		h.ok(s.Environments.Rebuild(ctx, Rebuild{Repo: "acme/api", By: "Ada L.", At: later.Add(time.Hour)}))
		if whole := rebuilt("acme/api"); whole.Key != "" || whole.By != "Ada L." {
			h.Errorf("a later rebuild of all: %+v", whole)
		}
	})
}
