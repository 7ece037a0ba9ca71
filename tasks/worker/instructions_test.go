package worker

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Every run gets the instructions of the base branch, in each profile and whatever the head has, although nothing is
// trusted.
func TestInstructionsOfTheBaseBranch(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	work := t.TempDir()
	r.git(work, "clone", "--quiet", filepath.Join(r.root, "acme", "api.git"), ".")
	for branch, text := range map[string]string{"main": "base\n", "head": "evil\n"} {
		r.git(work, "checkout", "--quiet", "-B", branch, "origin/main")
		r.write(work, "CLAUDE.md", text)
		r.git(work, "add", "--all")
		r.git(work, "commit", "--quiet", "--message", text)
		r.git(work, "push", "--quiet", "origin", branch)
	}
	r.agent.do = nil
	base := ""
	r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{Base: base}, nil }
	r.worker(r.disk(t.TempDir()))
	profiles := []agent.Profile{agent.Write, agent.Read, agent.Untrusted}
	for i, profile := range slices.Concat(profiles, profiles) {
		if i == len(profiles) {
			base = "head" // of a pull request, which anyone who can push may choose
		}
		task := r.repoTask("of " + string(profile) + base)
		task.Ref, task.Profile = "head", profile
		if e := r.ending(r.submit(task)); e.Kind != tasks.Answered {
			t.Fatalf("ending = %+v", e)
		}
		s := r.agent.specs()[i]
		if len(s.Instructions) != 1 || s.Instructions[0].Dir != s.Dir || len(s.Instructions[0].Texts) != 1 ||
			s.Instructions[0].Texts[0].Text != "base\n" {
			t.Errorf("%s: the run got %+v", profile, s.Instructions)
		}
	}
	r.foresees("instructions: CLAUDE.md\n")
}

// Of a local directory the CLI reads the instructions itself, except in runs that only read.
func TestInstructionsOfALocalDirectory(t *testing.T) {
	t.Parallel()
	f, dir := newFleet(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("local\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.worker()
	for i, c := range []struct {
		profile agent.Profile
		want    int
	}{{agent.Read, 1}, {agent.Write, 0}} {
		task := f.task(string(c.profile), "x")
		task.Dir, task.Profile = dir, c.profile
		if e := f.ending(f.submit(task)); e.Kind != tasks.Answered {
			t.Fatalf("ending = %+v", e)
		}
		s := f.agent.specs()[i]
		if len(s.Instructions) != c.want || c.want > 0 && (s.Instructions[0].Dir != dir ||
			s.Instructions[0].Texts[0].Text != "local\n") {
			t.Errorf("%s: the run got %+v", c.profile, s.Instructions)
		}
	}
}
