package main

import (
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/internal/legible"
)

func webhooksCommand(t *terminal) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the deliveries of webhooks that have failed"}
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/webhooks", nil, func(l struct{ Undelivered []undelivered }) {
			t.printUndelivered(l.Undelivered)
		})
	}
	replay := &cobra.Command{Use: "replay ID", Short: "Send a delivery again"}
	replay.RunE = func(c *cobra.Command, args []string) error {
		path := "POST /api/webhooks/" + url.PathEscape(args[0]) + "/replay"
		return show(c.Context(), t, path, nil, func(r struct{ ID string }) {
			printf(t.stdout, "%s is sent again\n", legible.Line(r.ID))
		})
	}
	return group("webhooks", "List the deliveries of webhooks that have failed, or send one again", list, replay)
}

// undelivered is a delivery of a webhook that has failed.
type undelivered struct {
	ID, Webhook, Task, Problem string
	Attempts                   int
	Failed, Next               time.Time
}

// printUndelivered prints a table of failed deliveries.
func (t *terminal) printUndelivered(all []undelivered) {
	if len(all) == 0 {
		printf(t.stderr, "All webhooks were delivered.\n")
		return
	}
	list := newTable("ID", "WEBHOOK", "TASK", "ATTEMPTS", "FAILED", "NEXT", "PROBLEM")
	list.spare = []string{"TASK", "WEBHOOK"}
	for _, one := range all {
		next := "given up"
		if !one.Next.IsZero() {
			next = minute(one.Next)
		}
		list.add(one.ID, one.Webhook, one.Task, strconv.Itoa(one.Attempts), minute(one.Failed), next, one.Problem)
	}
	list.print(t.stdout)
}
