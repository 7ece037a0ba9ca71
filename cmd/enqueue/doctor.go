package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
)

const doctorHelp = `
Asks the front door, which asks Redis, every worker, Slack and GitHub. Each
check is ok, a note, a warning or an error, with why it matters and what to do.
Exits with 1 if there is an error.
`

// fleet is what GET /api/health tells.
type fleet struct {
	Problem string `json:"problem"`
	Redis   string `json:"redis"`
	Checks  checks `json:"checks"`
	Tasks   struct {
		Running int `json:"running"`
		Waiting int `json:"waiting"`
		Held    int `json:"held"`
	} `json:"tasks"`
	Workers []struct {
		ID      string `json:"id"`
		Version string `json:"version"`
		Slots   int    `json:"slots"`
		Running int    `json:"running"`
		Checks  checks `json:"checks"`
	} `json:"workers"`
}

// checks are what was looked at.
type checks []store.Finding

// doctorCommand asks the front door, which sees Redis as the fleet does: Redis itself need not be in reach of whoever asks, and that of
// a standalone system has no address that anybody knows.
func doctorCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	raw := flags.Bool("json", false, "print the API's own answer about Redis and the workers")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return misused
		}
		text, f, err := t.door.health(ctx)
		if err != nil {
			return err
		}
		services, err := t.door.services(ctx)
		if err != nil {
			services = checks{{Severity: store.Fatal, What: "the services cannot be asked about", Why: err.Error(), Remedy: "Look at the front door's log."}}
		}
		if *raw {
			if err := t.json(text); err != nil {
				return err
			}
		} else {
			t.report(f, services)
		}
		bad := f.Checks.bad() || services.bad()
		for _, w := range f.Workers {
			bad = bad || w.Checks.bad()
		}
		if bad {
			return failed
		}
		return nil
	}
}

// health asks for the fleet's. 503 is an answer, too: that it is not well.
func (d *door) health(ctx context.Context) (text []byte, f fleet, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := d.send(ctx, http.MethodGet, "/api/health", nil)
	if err != nil {
		return nil, f, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return nil, f, d.refusal(resp)
	}
	if text, err = io.ReadAll(resp.Body); err != nil {
		return nil, f, fmt.Errorf("read answer: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Redis == "" {
		return nil, f, fmt.Errorf("%s answered %s and no health: is this errand?", d.base, resp.Status)
	}
	return text, f, nil
}

// services asks the front door how the services are set up that it works with.
func (d *door) services(ctx context.Context) (checks, error) {
	var said struct{ Findings checks }
	_, err := d.call(ctx, http.MethodGet, "/api/health/services", &said)
	return said.Findings, err
}

// report prints the front door's checks, and each worker's below its name.
func (t *terminal) report(f fleet, services checks) {
	t.check(store.Finding{What: "the front door answers at " + t.door.base}, 0)
	t.checks(f.Checks, 0)
	t.checks(services, 0)
	for _, w := range f.Workers {
		say(t.stdout, "\nworker %s, version %s, %d of %d slots taken\n", legible.Line(w.ID), legible.Line(cmp.Or(w.Version, "unknown")), w.Running, w.Slots)
		t.checks(w.Checks, 2)
	}
	if f.Redis != "ok" {
		return
	}
	words := fmt.Sprintf("%d tasks run, %d wait", f.Tasks.Running, f.Tasks.Waiting)
	if f.Tasks.Held > 0 {
		words += fmt.Sprintf(", %d of them until a certain time", f.Tasks.Held)
	}
	say(t.stdout, "\n%s\n", words)
}

func (t *terminal) checks(all checks, indent int) {
	for _, c := range all {
		t.check(c, indent)
	}
}

// check prints one thing that was looked at; one that is well has no severity, or says so.
func (t *terminal) check(c store.Finding, indent int) {
	severity := cmp.Or(string(c.Severity), "ok")
	style := map[string]term.Style{"ok": term.Green, "note": term.Cyan, "warning": term.Yellow, "error": term.Red}[severity]
	left := strings.Repeat(" ", indent)
	say(t.stdout, "%s%s %s\n", left, t.stdout.Paint(style, fmt.Sprintf("%-8s", severity)), legible.Line(c.What))
	for _, line := range []string{c.Why, c.Remedy} {
		if line != "" {
			say(t.stdout, "%s%-8s   %s\n", left, "", legible.Line(line))
		}
	}
}

// bad reports whether anything is wrong that has to be mended.
func (c checks) bad() bool {
	for _, f := range c {
		if f.Severity == store.Fatal {
			return true
		}
	}
	return false
}
