package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
)

const doctorHelp = `
The front door checks Redis, every worker, Slack and GitHub. Each finding is
ok, a note, a warning or an error, with its reason and remedy.
Exits with 1 if there is an error.
`

// fleetHealth is the response of GET /api/health.
type fleetHealth struct {
	Problem string   `json:"problem"`
	Redis   string   `json:"redis"`
	Checks  findings `json:"checks"`
	Tasks   struct {
		Running int `json:"running"`
		Waiting int `json:"waiting"`
		Held    int `json:"held"`
	} `json:"tasks"`
	Workers []struct {
		ID      string   `json:"id"`
		Version string   `json:"version"`
		Slots   int      `json:"slots"`
		Running int      `json:"running"`
		Checks  findings `json:"checks"`
	} `json:"workers"`
}

// findings are the results of checks.
type findings []store.Finding

// doctorCommand asks the front door, because Redis need not be reachable from the user's machine.
func doctorCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	raw := flags.Bool("json", false, "print the API's JSON about Redis and the workers")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return exitUsage
		}
		text, f, err := t.api.health(ctx)
		if err != nil {
			return err
		}
		services, err := t.api.serviceFindings(ctx)
		if err != nil {
			services = findings{{Severity: store.Fatal, What: "cannot check Slack and GitHub", Why: err.Error(), Remedy: "Check the front door's log."}}
		}
		if *raw {
			if err := t.printJSON(text); err != nil {
				return err
			}
		} else {
			t.printHealth(f, services)
		}
		fatal := f.Checks.fatal() || services.fatal()
		for _, w := range f.Workers {
			fatal = fatal || w.Checks.fatal()
		}
		if fatal {
			return exitFailed
		}
		return nil
	}
}

// health returns the fleet's health. The status 503 means unhealthy and has the same body.
func (c *apiClient) health(ctx context.Context) (text []byte, f fleetHealth, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/api/health", nil)
	if err != nil {
		return nil, f, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return nil, f, c.responseError(resp)
	}
	if text, err = io.ReadAll(resp.Body); err != nil {
		return nil, f, fmt.Errorf("read response: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Redis == "" {
		return nil, f, fmt.Errorf("%s answered %s without health: is this errand?", c.base, resp.Status)
	}
	return text, f, nil
}

// serviceFindings returns the findings about Slack and GitHub.
func (c *apiClient) serviceFindings(ctx context.Context) (findings, error) {
	var v struct{ Findings findings }
	_, err := c.call(ctx, http.MethodGet, "/api/health/services", nil, &v)
	return v.Findings, err
}

// printHealth prints the findings about the front door, the services and each worker.
func (t *terminal) printHealth(f fleetHealth, services findings) {
	t.printFinding(store.Finding{What: "the front door answers at " + t.api.base}, 0)
	t.printFindings(f.Checks, 0)
	t.printFindings(services, 0)
	for _, w := range f.Workers {
		printf(t.stdout, "\nworker %s, version %s, %d of %d slots in use\n", legible.Line(w.ID), legible.Line(cmp.Or(w.Version, "unknown")), w.Running, w.Slots)
		t.printFindings(w.Checks, 2)
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

func (t *terminal) printFindings(list findings, indent int) {
	for _, f := range list {
		t.printFinding(f, indent)
	}
}

// printFinding prints a finding. A check that passed has no severity.
func (t *terminal) printFinding(f store.Finding, indent int) {
	severity := cmp.Or(string(f.Severity), "ok")
	style := map[string]term.Style{"ok": term.Green, "note": term.Cyan, "warning": term.Yellow, "error": term.Red}[severity]
	left := strings.Repeat(" ", indent)
	printf(t.stdout, "%s%s %s\n", left, t.stdout.Paint(style, fmt.Sprintf("%-8s", severity)), legible.Line(f.What))
	for _, line := range []string{f.Why, f.Remedy} {
		if line != "" {
			printf(t.stdout, "%s%-8s   %s\n", left, "", legible.Line(line))
		}
	}
}

// fatal reports whether a finding is an error.
func (list findings) fatal() bool {
	return slices.ContainsFunc(list, func(f store.Finding) bool { return f.Severity == store.Fatal })
}
