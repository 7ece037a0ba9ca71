package main

import (
	"context"
	"flag"
	"net/url"
	"strconv"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
)

func webhooksCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 0:
			return show(ctx, t, "GET /api/webhooks", nil, func(l api.Undelivered) { t.printUndelivered(l.Undelivered) })
		case len(args) == 2 && args[0] == "replay":
			return show(ctx, t, "POST /api/webhooks/"+url.PathEscape(args[1])+"/replay", nil, func(r api.Replayed) {
				printf(t.stdout, "%s is sent again\n", legible.Line(r.ID))
			})
		}
		return exitUsage
	}
}

// printUndelivered prints a table of failed deliveries.
func (t *terminal) printUndelivered(all []tasks.Undelivered) {
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
