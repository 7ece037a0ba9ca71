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
	"github.com/errand-fleet/errand/tasks/rights"
)

// The hosts that runs and set-ups reach become one draft pull request, which later runs add to and which is not
// repeated.
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
	r.policy.Repository = func(string) (rights.Repository, bool) {
		return rights.Repository{Environment: environment.Declaration{Egress: agent.Egress{Mode: hostlist.Learn}}}, true
	}
	r.worker(r.disk(t.TempDir()), with)
	bare := filepath.Join(r.root, "acme", "api.git")
	for i, c := range []struct {
		reached []string
		want    string // at the end of the file; empty: no further proposal
	}{
		{
			[]string{"listed.example", "proxy.golang.org", "10.0.0.5:8443", "a.example"},
			"  - listed.example # why\n  - setup.example\n  - a.example\n",
		},
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
		if said := strings.Join(r.events(id, agent.Notice), "\n"); strings.Contains(said,
			"https://hub.example/7") != (c.want != "") {
			t.Errorf("%d: followers see %s", i, said)
		}
		if c.want == "" {
			continue
		}
		text := r.git(bare, "show", "errand/egress:"+environment.File) + "\n"
		if !strings.HasPrefix(text, "# ours\nsetup: [npm ci]\n") || !strings.HasSuffix(text, c.want) {
			t.Errorf("%d: the file is %s", i, text)
		}
		if w := works[0]; w.Branch != "errand/egress" || w.Base != "main" || !strings.Contains(w.Summary, "a.example") ||
			strings.Contains(w.Summary, "proxy.golang.org") {
			t.Errorf("%d: proposed %+v", i, w)
		}
	}
	if got := r.git(bare, "branch", "--list", "errand/fake-*"); got != "" {
		t.Errorf("branches of the thread: %s", got)
	}

	// After the merge there is nothing to propose.
	r.git(bare, "update-ref", "refs/heads/main", "errand/egress")
	before := len(h.proposed())
	r.ending(r.submit(r.repoTask("a")))
	if works := h.proposed()[before:]; len(works) > 0 {
		t.Errorf("proposed %+v", works)
	}
}

// reaches lets each run reach hosts that are to be proposed.
func (r *remote) reaches(hosts func(agent.Spec) []string) {
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		res := answer("done")
		res.Egress = &agent.EgressReport{Learn: true, Reached: hosts(s)}
		return res, nil
	}
}

// A proposal changes the file as it is on the base branch by then, and takes back nothing that was merged during the
// run.
func TestHostsAreProposedForTheBaseAsItIs(t *testing.T) {
	t.Parallel()
	for merged, want := range map[string]string{
		"setup: [npm ci]\negress: [b.example]\n": "setup: [npm ci]\negress: [b.example, a.example]\n",
		"egress: [a.example]\n":                  "",
	} {
		t.Run(merged, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, nil)
			r.declare("main", "setup: [make]\n")
			var scripts []agent.Script
			r.agent.script = leaves(&scripts, agent.Scripted{Outcome: agent.Done})
			r.reaches(func(agent.Spec) []string {
				r.declare("main", merged)
				return []string{"a.example"}
			})
			r.worker(r.disk(t.TempDir()), with)
			if e := r.ending(r.submit(r.repoTask("a"))); e.Kind != tasks.Answered ||
				len(h.proposed()) > 0 != (want != "") {
				t.Fatalf("ending = %+v, proposed %+v", e, h.proposed())
			}
			if want == "" {
				return
			}
			if text := r.git(filepath.Join(r.root, "acme", "api.git"), "show",
				"errand/egress:"+environment.File) + "\n"; text != want {
				t.Errorf("the file is %s", text)
			}
		})
	}
}

// A run does not wait for the proposal of another one. The next run proposes its hosts.
func TestHostsOfConcurrentRuns(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, nil)
	reached := map[string][]string{"fake/a": {"a.example"}, "fake/b": {"b.example"}, "fake/c": {"c.example"}}
	r.reaches(func(s agent.Spec) []string { return reached[s.Thread] })
	proposing, proceed := make(chan struct{}), make(chan struct{})
	h.fail = func(n int) error {
		if n == 1 {
			close(proposing)
			<-proceed
		}
		return nil
	}
	r.worker(r.disk(t.TempDir()), with, func(c *Config) { c.Slots = 2 })
	first := r.submit(r.repoTask("a"))
	<-proposing
	if e := r.ending(r.submit(r.repoTask("b"))); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	close(proceed)
	r.ending(first)
	r.ending(r.submit(r.repoTask("c")))
	works := h.proposed()
	if len(works) != 2 || !strings.Contains(works[1].Summary, "- `b.example`\n- `c.example`\n- `a.example`") {
		t.Errorf("proposed %+v", works)
	}
}

// What cannot be proposed does not change the answer.
func TestLearnedHostsThatCannotBeProposed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"another form": "egress: {allow: [a.example]}\n", "no settings": "- x\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, func(*remote, agent.Spec) {})
			r.declare("main", text)
			r.reaches(func(agent.Spec) []string { return []string{"b.example"} })
			r.worker(r.disk(t.TempDir()), with)
			if e := r.ending(r.submit(r.repoTask("a"))); e.Kind != tasks.Answered || len(h.proposed()) > 0 {
				t.Errorf("ending = %+v, proposed %+v", e, h.proposed())
			}
		})
	}
}
