package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
)

const doctorJSON = "the API's JSON about Redis and the workers"

// fleetHealth is the response of GET /api/health.
type fleetHealth struct {
	Problem, Redis string
	Checks         []store.Finding
	Tasks          struct{ Running, Waiting, Held int }
	Workers        []struct {
		ID, Version    string
		Slots, Running int
		Checks         []store.Finding
	}
}

// doctorCommand asks the front door, because Redis need not be reachable from the user's machine.
func doctorCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return exitUsage
		}
		text, f, err := t.api.health(ctx)
		if err != nil {
			return err
		}
		var services struct{ Findings []store.Finding }
		if _, err := t.api.call(ctx, "GET /api/health/services", nil, &services); err != nil {
			services.Findings = []store.Finding{{
				Severity: store.Fatal, What: "cannot check Slack and GitHub", Why: err.Error(), Remedy: "Check the front door's log.",
			}}
		}
		if t.raw {
			err = t.printJSON(text)
		} else {
			t.printHealth(f, services.Findings)
		}
		all := slices.Concat(f.Checks, services.Findings)
		for _, w := range f.Workers {
			all = append(all, w.Checks...)
		}
		if err == nil && slices.ContainsFunc(all, func(f store.Finding) bool { return f.Severity == store.Fatal }) {
			return exitFailed
		}
		return err
	}
}

// health returns the fleet's health. The status 503 means unhealthy and has the same body.
func (c *apiClient) health(ctx context.Context) (text []byte, f fleetHealth, err error) {
	text, err = c.call(ctx, "GET /api/health", nil, &f)
	if e, ok := errors.AsType[*apiError](err); ok && e.status == http.StatusServiceUnavailable && json.Unmarshal(e.body, &f) == nil {
		text, err = e.body, nil
	}
	if err == nil && f.Redis == "" {
		err = fmt.Errorf("%s answered without health: is this errand?", c.base)
	}
	return text, f, err
}

// printHealth prints the findings about the front door, the services and each worker.
func (t *terminal) printHealth(f fleetHealth, services []store.Finding) {
	answers := store.Finding{What: "the front door answers at " + t.api.base}
	t.printFindings("", slices.Concat([]store.Finding{answers}, f.Checks, services))
	for _, w := range f.Workers {
		printf(t.stdout, "\nworker %s, version %s, %d of %d slots in use\n", legible.Line(w.ID), legible.Line(cmp.Or(w.Version, "unknown")), w.Running, w.Slots)
		t.printFindings("  ", w.Checks)
	}
	if f.Redis != "ok" {
		return
	}
	words := fmt.Sprintf("%d tasks running, %d waiting", f.Tasks.Running, f.Tasks.Waiting)
	if f.Tasks.Held > 0 {
		words += fmt.Sprintf(", %d of them until a set time", f.Tasks.Held)
	}
	printf(t.stdout, "\n%s\n", words)
}

// printFindings prints findings behind a margin. A check that passed has no severity.
func (t *terminal) printFindings(margin string, list []store.Finding) {
	for _, f := range list {
		severity := cmp.Or(string(f.Severity), "ok")
		style := map[string]term.Style{"ok": term.Green, "note": term.Cyan, "warning": term.Yellow, "error": term.Red}[severity]
		printf(t.stdout, "%s%s %s\n", margin, t.stdout.Paint(style, fmt.Sprintf("%-8s", severity)), legible.Line(f.What))
		for _, line := range []string{f.Why, f.Remedy} {
			if line != "" {
				printf(t.stdout, "%s%-8s   %s\n", margin, "", legible.Line(line))
			}
		}
	}
}
