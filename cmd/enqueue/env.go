package main

import (
	"cmp"
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
			return show(ctx, t, "GET /api/fleet/environments", nil, func(l api.Environments) {
				t.printEnvironments(l.Environments, time.Now())
			})
		case len(args) == 2 && args[0] == "show":
			return show(ctx, t, "GET /api/fleet/environments?repo="+url.QueryEscape(args[1]), nil,
				func(l api.Environments) {
					t.printEachEnvironment(l.Environments, time.Now())
				})
		case len(args) == 2 && args[0] == "rebuild":
			return show(ctx, t, "POST /api/fleet/environments/"+url.PathEscape(args[1])+"/rebuild", nil,
				func(r store.Rebuild) {
					printf(t.stdout, "the next run in %s sets up a new environment, on every worker\n",
						legible.Line(r.Repo))
				})
		case len(args) == 2 && args[0] == "rm":
			return show(ctx, t, "DELETE /api/fleet/environments/"+url.PathEscape(args[1]), nil, func(r store.Rebuild) {
				printf(t.stdout, "the workers remove this environment of %s when no run uses it\n",
					legible.Line(r.Repo))
			})
		}
		return exitUsage
	}
}

const noEnvironment = "No live worker keeps an environment.\n"

// printEachEnvironment prints all about each environment, with an empty line between them.
func (t *terminal) printEachEnvironment(all []tasks.Environment, now time.Time) {
	if len(all) == 0 {
		printf(t.stderr, noEnvironment)
	}
	for i, e := range all {
		state := "current"
		if e.Rebuild != nil {
			state = "outdated since " + e.Rebuild.At.Local().Format(time.DateTime)
		}
		if i > 0 {
			printf(t.stdout, "\n")
		}
		for _, fact := range [][2]string{
			{"key", e.ID},
			{"host", e.Host},
			{"worker", e.Worker},
			{"made", e.Created.Local().Format(time.DateTime)},
			{"used", legible.Age(now.Sub(e.Used)) + " ago"},
			{"set up in", tasks.Lasted(e.Took())},
			{"size", legible.Bytes(e.Size)},
			{"declared by", cmp.Or(e.From, "unknown")},
			{"state", state},
		} {
			printf(t.stdout, "%-11s  %s\n", fact[0], legible.Line(fact[1]))
		}
	}
}

// printEnvironments prints a table of environments.
func (t *terminal) printEnvironments(all []tasks.Environment, now time.Time) {
	if len(all) == 0 {
		printf(t.stderr, noEnvironment)
		return
	}
	list := newTable("REPOSITORY", "HOST", "AGE", "SET-UP", "SIZE", "USED", "STATE")
	list.spare = []string{"SET-UP", "SIZE", "USED"}
	for _, e := range all {
		state := "current"
		if e.Rebuild != nil {
			state = "outdated"
		}
		list.add(e.Repo, e.Host, legible.Age(now.Sub(e.Created)), tasks.Lasted(e.Took()), legible.Bytes(e.Size),
			legible.Age(now.Sub(e.Used))+" ago", state)
	}
	list.print(t.stdout)
}
