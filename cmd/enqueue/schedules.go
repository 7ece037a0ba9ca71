package main

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/internal/legible"
)

func schedulesCommand(t *terminal) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the schedules"}
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/schedules", nil, func(l struct{ Schedules []schedule }) { t.printSchedules(l.Schedules) })
	}
	resume := &cobra.Command{Use: "resume NAME", Short: "Let a paused schedule start tasks again"}
	resume.RunE = func(c *cobra.Command, args []string) error {
		path := "POST /api/schedules/" + url.PathEscape(args[0]) + "/resume"
		return show(c.Context(), t, path, nil, func(s schedule) {
			printf(t.stdout, "%s starts its next task at %s\n", legible.Line(s.Name), minute(s.Next))
		})
	}
	return group("schedules", "List the schedules, or let a paused one start tasks again", list, resume)
}

// schedule is a series of tasks that start at set times.
type schedule struct {
	Name, When, Repo, Task string
	Next, Paused           time.Time
	Failures, Skipped      int
}

// printSchedules prints a table of schedules.
func (t *terminal) printSchedules(all []schedule) {
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
