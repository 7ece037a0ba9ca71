package main

import (
	"context"
	"flag"
	"net/url"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

func schedulesCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(ctx context.Context, args []string) error {
		if len(args) == 0 {
			return show(ctx, t, "GET /api/schedules", nil, func(l api.Schedules) { t.printSchedules(l.Schedules) })
		}
		if len(args) == 2 && args[0] == "resume" {
			path := "POST /api/schedules/" + url.PathEscape(args[1]) + "/resume"
			return show(ctx, t, path, nil, func(s tasks.Schedule) {
				printf(t.stdout, "%s starts its next task at %s\n", legible.Line(s.Name), minute(s.Next))
			})
		}
		return exitUsage
	}
}

// printSchedules prints a table of schedules.
func (t *terminal) printSchedules(all []tasks.Schedule) {
	list := newTable("NAME", "TIMES", "REPOSITORY", "NEXT", "FAILURES", "SKIPPED", "LATEST TASK")
	list.spare = []string{"SKIPPED", "REPOSITORY"}
	for _, one := range all {
		next := minute(one.Next)
		if !one.Paused.IsZero() {
			next = "paused since " + minute(one.Paused)
		}
		list.add(one.Name, one.When, one.Repo, next, strconv.Itoa(one.Failures), strconv.Itoa(one.Skipped), one.Task)
	}
	list.print(t.stdout)
	if len(all) == 0 {
		printf(t.stderr, "No schedules.\n")
	}
}

func minute(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
