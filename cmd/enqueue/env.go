package main

import (
	"context"
	"flag"
	"net/url"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

func envCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "list":
			return show(ctx, t, "GET /api/fleet/environments", nil, func(l api.Environments) { t.printEnvironments(l.Environments, time.Now()) })
		case len(args) == 2 && args[0] == "rebuild":
			return show(ctx, t, "POST /api/fleet/environments/"+url.PathEscape(args[1])+"/rebuild", nil, func(r store.Rebuild) {
				printf(t.stdout, "the next run in %s sets up its environment anew, on every worker\n", legible.Line(r.Repo))
			})
		}
		return exitUsage
	}
}

// printEnvironments prints a table of environments.
func (t *terminal) printEnvironments(all []tasks.Environment, now time.Time) {
	if len(all) == 0 {
		printf(t.stderr, "No live worker keeps an environment.\n")
		return
	}
	list := newTable("REPOSITORY", "HOST", "AGE", "SET-UP", "SIZE", "USED", "STATE")
	list.spare = []string{"SET-UP", "SIZE", "USED"}
	for _, e := range all {
		state := "current"
		if e.Rebuild != nil {
			state = "outdated"
		}
		list.add(e.Repo, e.Host, legible.Age(now.Sub(e.Made)), tasks.Lasted(e.Took()), legible.Bytes(e.Size), legible.Age(now.Sub(e.Used))+" ago", state)
	}
	list.print(t.stdout)
}
