package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
)

// foreseen returns the outlook of acme/api, with a line for each fact and finding.
func (r *remote) foreseen() string {
	r.Helper()
	o, err := desk.FleetOf(r.desk).Outlook(operator(r.T), "acme/api")
	if err != nil {
		r.Fatal(err)
	}
	var b strings.Builder
	for _, f := range o.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, strings.Join(f.Values, "; "))
	}
	for _, f := range o.Findings {
		fmt.Fprintf(&b, "%s %s\n", f.Severity, f.What)
	}
	return b.String()
}

func (r *remote) foresees(parts ...string) {
	r.Helper()
	got := r.foreseen()
	for _, part := range parts {
		if wanted, unwanted := strings.CutPrefix(part, "!"); strings.Contains(got, wanted) == unwanted {
			r.Errorf("%q in\n%s", part, got)
		}
	}
}

// The outlook of a repository has what its base branch and the operator declare, and whether an environment is kept.
func TestOutlook(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main",
		"setup: [npm ci, make]\nlocks: [README.md, go.sum]\npath: [bin]\nenv: {A: hidden, HOME: x}\negress: [x.example]\n")
	r.policy.Repository = func(string) (rights.Repository, bool) {
		return rights.Repository{Environment: environment.Declaration{Env: map[string]string{"B": "hidden"}}}, true
	}
	r.policy.Egress = agent.Egress{Mode: "list", Hosts: []string{"go"}, Private: []string{"db.corp"}}
	r.foresees("profile: write", "pool: default", "workers alive: 0", "error no worker is alive", "!set-up")
	var scripts []agent.Script
	r.agent.do, r.agent.script = nil, leaves(&scripts, agent.Scripted{Outcome: agent.Done})
	h := &hub{checks: []string{"make test"}}
	r.worker(r.disk(t.TempDir()), func(c *Config) {
		c.Commands, c.Limits = h.commands, []string{"time 1h", "200 processes and threads"}
		c.Secrets = func(string) map[string]string { return map[string]string{"TOKEN": "s3cret"} }
	})
	r.workers(func(all []store.Worker) bool { return capacity.Able(all[0]) })
	if e := r.ending(r.submit(r.repoTask("a"))); e.Kind != tasks.Answered || len(scripts) == 0 {
		t.Fatalf("ending = %+v", e)
	}
	r.foresees("workers alive: 1", "sandbox: yes", "set-up: npm ci; make", "before each run: \n",
		"lock files: README.md\n", "environment: kept for ", "path: bin",
		"variables: A; B\n", "secrets, for the set-up: TOKEN\n", "egress: go; x.example; db.corp (private)\n",
		"checks: make test",
		"limits: time 1h; 200 processes and threads\n", "warning .github/errand.yml: env: HOME is set by errand.",
		"!hidden", "!s3cret", "!no sandbox")
	if _, err := desk.FleetOf(r.desk).Rebuild(operator(t), "acme/api"); err != nil {
		t.Fatal(err)
	}
	r.forget()
	r.foresees("environment: none on the worker that was asked")
}

// Secrets of the fleet that a repository declares, or that an error holds, are hidden.
func TestOutlookIsRedacted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checks []string
		err    error
		want   string
	}{
		"checks": {[]string{"make TOKEN=s3cret-value"}, nil, "checks: make TOKEN=[redacted]\n"},
		"no file": {
			nil, errors.New("read https://s3cret-value@x.example"),
			"warning the checks of the repository cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.declare("main",
				"setup: [a s3cret-value]\nstart: [b s3cret-value]\npath: [s3cret-value]\ntools: {s3cret-value: ''}\n")
			r.policy.Redactor = agent.NewRedactor("s3cret-value")
			r.worker(r.disk(t.TempDir()), func(cfg *Config) {
				cfg.Commands = func(context.Context, string) ([]string, error) { return c.checks, c.err }
			})
			r.workers(func(all []store.Worker) bool { return capacity.Able(all[0]) })
			r.foresees("set-up: a [redacted]\n", "before each run: b [redacted]\n", "path: [redacted]\n",
				"[redacted]: ", c.want, "!s3cret")
			o, err := desk.FleetOf(r.desk).Outlook(operator(t), "acme/api")
			if text := fmt.Sprintf("%+v", o); err != nil || strings.Contains(text, "s3cret") ||
				c.err != nil && !strings.Contains(text, "https://[redacted]@x") {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// forget drops the answers of workers that Redis keeps for a minute.
func (r *remote) forget() {
	r.Helper()
	keys, err := r.rdb.Keys(r.Context(), "errand:reply:*").Result()
	if err != nil || len(keys) == 0 {
		r.Fatal(keys, err)
	}
	if err := r.rdb.Del(r.Context(), keys...).Err(); err != nil {
		r.Fatal(err)
	}
}

// The outlook says what is missing.
func TestOutlookOnWhatIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file    string
		profile agent.Profile
		flat    bool
		want    []string
	}{
		"no sandbox": {"setup: [npm ci]\n", agent.Write, true, []string{"sandbox: no", "warning no sandbox"}},
		"nothing": {
			"", agent.Write, false, []string{"set-up: \n", "!lock files", "warning secrets without a set-up"},
		},
		"executes nothing": {"setup: [npm ci]\n", agent.Read, false, []string{
			"profile: read", "note no environment", "set-up: \n",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.declare("main", c.file)
			repository := func(string) (rights.Repository, bool) { return rights.Repository{Profile: c.profile}, true }
			r.policy.Repository, r.agent.flat = repository, c.flat
			r.desk = desk.New(r.store, r.queue, r.policy, nil)
			r.worker(r.disk(t.TempDir()), func(c *Config) {
				c.Secrets = func(string) map[string]string { return map[string]string{"TOKEN": "x"} }
			})
			r.workers(func(all []store.Worker) bool { return capacity.Able(all[0]) })
			r.foresees(slices.Concat(c.want, []string{"pool: default"})...)
		})
	}
}
