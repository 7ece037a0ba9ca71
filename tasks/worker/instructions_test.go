package worker

import (
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
	for branch, text := range map[string]string{"main": "base\n", "head": "evil\n"} {
		r.push("refs/heads/"+branch, map[string]string{"CLAUDE.md": text})
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
