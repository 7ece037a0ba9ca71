package main

import (
	"context"
	"flag"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

func schedulesCommand(t *terminal, flags *flag.FlagSet) runFunc {
	var d tasks.ScheduleDefinition
	flags.StringVar(&d.When, "when", "", "set: the `times`, such as 'every weekday at 07:00 Europe/Berlin'")
	flags.StringVar(&d.Repo, "repo", "", "set: the `repository`; default none")
	flags.StringVar(&d.Branch, "branch", "", "set: the `branch` to start from; default the repository's base")
	flags.StringVar((*string)(&d.Profile), "profile", "",
		"set: the `profile` of the agent, write or read; default write")
	flags.Float64Var(&d.MaxUSD, "budget", 0,
		"set: at most this `amount` of US dollars for each task; default that of the fleet")
	flags.StringVar(&d.Results, "results", "", "set: the `ID` of the Slack channel for the answers; default none")
	return func(ctx context.Context, args []string) error {
		path := ""
		if len(args) > 1 {
			path = " /api/schedules/" + url.PathEscape(args[1])
		}
		switch {
		case len(args) == 0:
			return show(ctx, t, "GET /api/schedules", nil, func(l api.Schedules) { t.printSchedules(l.Schedules) })
		case len(args) == 2 && args[0] == "resume":
			return show(ctx, t, "POST"+path+"/resume", nil, t.printNext)
		case len(args) > 2 && args[0] == "set":
			d.Prompt = strings.Join(args[2:], " ")
			return show(ctx, t, "PUT"+path, d, t.printNext)
		case len(args) == 2 && args[0] == "rm":
			return t.remove(ctx, "schedules", args[1], "The schedule %s starts no more tasks.\n")
		}
		return exitUsage
	}
}

func (t *terminal) printNext(s tasks.Schedule) {
	name := legible.Line(s.Name)
	if s.Next.IsZero() {
		printf(t.stdout, "%s is paused: enqueue schedules resume %s\n", name, name)
		return
	}
	printf(t.stdout, "%s starts its next task at %s\n", name, minute(s.Next))
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
