package worker

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
)

// declare commits .github/errand.yml to a branch of the repository.
func (r *remote) declare(branch, text string) {
	r.Helper()
	work := r.TempDir()
	bare := filepath.Join(r.root, "acme", "api.git")
	r.git(work, "clone", "--quiet", bare, ".")
	if err := os.MkdirAll(filepath.Join(work, ".github"), 0o700); err != nil {
		r.Fatal(err)
	}
	r.write(work, environment.File, text)
	r.git(work, "add", "--all")
	r.git(work, "commit", "--quiet", "--message", "declare")
	r.git(work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
}

// The agent and the checks get the environment of the base branch, under the operator's.
func TestEnvironmentOfTheBaseBranch(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	r.declare("main", "env: {A: base, B: base, HOME: /evil}\n")
	r.declare("head", "env: {A: head, C: head}\n")
	h.checks = []string{"make test"}
	want := map[string]string{"A": "base", "B": "operator"}
	r.policy.Repository = func(string) (tasks.Repository, bool) {
		return tasks.Repository{Environment: environment.Declaration{Env: map[string]string{"B": "operator"}}}, true
	}
	checked := map[string]string{}
	r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
		checked = s.Env
		return agent.Scripted{Outcome: agent.Done}, nil
	}
	r.worker(r.disk(t.TempDir()), with)
	task := r.repoTask("a")
	task.Ref = "head"
	id := r.submit(task)
	if e := r.ending(id); e.Kind != tasks.Answered {
		t.Fatalf("ending = %+v", e)
	}
	if got := r.agent.specs()[0].Env; !maps.Equal(got, want) {
		t.Errorf("the agent has %v", got)
	}
	if !maps.Equal(checked, want) {
		t.Errorf("the check has %v", checked)
	}
	if said := strings.Join(r.events(id, agent.Notice), "\n"); !strings.Contains(said, ".github/errand.yml: env: HOME is set by errand.") {
		t.Errorf("followers do not see what is wrong with the file: %s", said)
	}
}

// Runs that execute no commands get no environment.
func TestNoEnvironment(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "env: {A: base}\n")
	r.policy.Repository = func(string) (tasks.Repository, bool) { return tasks.Repository{}, true }
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	for _, c := range []struct {
		thread  string
		profile agent.Profile
	}{{"read", agent.Read}, {"untrusted", agent.Untrusted}} {
		task := r.repoTask(c.thread)
		task.Profile = c.profile
		if e := r.ending(r.submit(task)); e.Kind != tasks.Answered {
			t.Fatalf("ending = %+v", e)
		}
	}
	for _, s := range r.agent.specs() {
		if len(s.Env) > 0 {
			t.Errorf("a run with the profile %s has %v", s.Profile, s.Env)
		}
	}
}

// A run starts without a file that is too large.
func TestLargeEnvironment(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "env: {A: base}\n#"+strings.Repeat("x", environment.MaxFile))
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	if e := r.ending(id); e.Kind != tasks.Answered || len(r.agent.specs()[0].Env) > 0 {
		t.Errorf("ending = %+v, %v", e, r.agent.specs()[0].Env)
	}
	if said := strings.Join(r.events(id, agent.Notice), "\n"); !strings.Contains(said, "more than 64 KiB") {
		t.Errorf("followers do not see it: %s", said)
	}
}
