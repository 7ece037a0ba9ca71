package worker

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/hostlist"
	"github.com/errand-fleet/errand/tasks"
)

// The hosts that runs and set-ups reach become one draft pull request, which later runs add to and which is not repeated.
func TestLearnedHostsAreProposed(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, func(*remote, agent.Spec) {})
	r.declare("main", "# ours\nsetup: [npm ci]\negress:\n  - listed.example # why\n")
	var reached []string
	learn := func(hosts ...string) *agent.EgressReport { return &agent.EgressReport{Learn: true, Reached: hosts} }
	r.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		res := answer("done")
		res.Egress = learn(reached...)
		return res, nil
	}
	var scripts []agent.Script
	r.agent.script = leaves(&scripts, agent.Scripted{Outcome: agent.Done, Egress: learn("setup.example")})
	r.policy.Egress = agent.Egress{Mode: hostlist.Listed, Hosts: []string{"go"}}
	r.policy.Repository = func(string) (tasks.Repository, bool) {
		return tasks.Repository{Environment: environment.Declaration{Egress: agent.Egress{Mode: hostlist.Learn}}}, true
	}
	r.worker(r.disk(t.TempDir()), with)
	bare := filepath.Join(r.root, "acme", "api.git")
	for i, c := range []struct {
		reached []string
		want    string // at the end of the file; empty: no further proposal
	}{
		{[]string{"listed.example", "proxy.golang.org", "10.0.0.5:8443", "a.example"}, "  - listed.example # why\n  - setup.example\n  - a.example\n"},
		{[]string{"a.example", "listed.example"}, ""},
		{[]string{"b.example"}, "  - listed.example # why\n  - b.example\n  - setup.example\n  - a.example\n"},
	} {
		reached = c.reached
		before := len(h.proposed())
		id := r.submit(r.repoTask("a"))
		e := r.ending(id)
		works := h.proposed()[before:]
		if e.Kind != tasks.Answered || e.Published != nil || len(works) > 1 || (len(works) == 1) != (c.want != "") {
			t.Fatalf("%d: ending = %+v, proposed %+v", i, e, works)
		}
		if said := strings.Join(r.events(id, agent.Notice), "\n"); strings.Contains(said, "https://hub.example/7") != (c.want != "") {
			t.Errorf("%d: followers see %s", i, said)
		}
		if c.want == "" {
			continue
		}
		text := r.git(bare, "show", learnBranch+":"+environment.File) + "\n"
		if !strings.HasPrefix(text, "# ours\nsetup: [npm ci]\n") || !strings.HasSuffix(text, c.want) {
			t.Errorf("%d: the file is %s", i, text)
		}
		if w := works[0]; w.Branch != learnBranch || w.Base != "main" || !strings.Contains(w.Summary, "a.example") || strings.Contains(w.Summary, "proxy.golang.org") {
			t.Errorf("%d: proposed %+v", i, w)
		}
	}
	if got := r.git(bare, "branch", "--list", "errand/fake-*"); got != "" {
		t.Errorf("branches of the thread: %s", got)
	}

	// After the merge there is nothing to propose.
	r.git(bare, "update-ref", "refs/heads/main", learnBranch)
	before := len(h.proposed())
	r.ending(r.submit(r.repoTask("a")))
	if works := h.proposed()[before:]; len(works) > 0 {
		t.Errorf("proposed %+v", works)
	}
}

// What cannot be proposed does not change the answer.
func TestLearnedHostsThatCannotBeProposed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"another form": "egress: {allow: [a.example]}\n", "no settings": "- x\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, func(*remote, agent.Spec) {})
			r.declare("main", text)
			r.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				res := answer("done")
				res.Egress = &agent.EgressReport{Learn: true, Reached: []string{"b.example"}}
				return res, nil
			}
			r.worker(r.disk(t.TempDir()), with)
			if e := r.ending(r.submit(r.repoTask("a"))); e.Kind != tasks.Answered || len(h.proposed()) > 0 {
				t.Errorf("ending = %+v, proposed %+v", e, h.proposed())
			}
		})
	}
}
