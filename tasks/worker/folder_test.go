package worker

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// An agent starts in the directory that the base branch sets, its thread keeps it when the setting changes, and the work
// of the whole clone is published. A directory of the request that is not there refuses the task.
func TestFolderOfARepository(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	r.push("refs/heads/main", map[string]string{
		"services/api/CLAUDE.md": "ABOUT services/api", "web/CLAUDE.md": "ABOUT web",
		environment.File: "directory: services/api\n",
	})
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "changed by "+s.ID)
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()), with)
	run := func(change func(*tasks.Task)) (agent.Spec, tasks.Ending) {
		task := r.repoTask("a")
		change(&task)
		id := r.submit(task)
		e := r.ending(id)
		specs := r.agent.specs()
		return specs[len(specs)-1], e
	}
	first, e := run(func(*tasks.Task) {})
	set := policy.Setting{Name: "directory", Value: "services/api", Of: environment.File}
	if e.Kind != tasks.Answered || first.Folder != "services/api" || !slices.Contains(e.Settings, set) ||
		!slices.Contains(first.Header, "directory services/api of .github/errand.yml") {
		t.Errorf("starts in %q: %+v", first.Folder, e)
	}
	for _, text := range first.Instructions[0].Texts {
		if (len(text.Paths) == 0) != (text.Text == "ABOUT services/api") {
			t.Errorf("told %+v", text)
		}
	}
	if len(h.proposed()) == 0 || e.Changed.Files != 1 {
		t.Errorf("the work outside of the directory is not published: %+v", e)
	}
	r.foresees("directory: services/api of .github/errand.yml\n", "!The directory")
	r.forget()

	r.declare("main", "directory: web\n")
	if second, e := run(func(*tasks.Task) {}); second.Folder != "services/api" || second.Resume == nil ||
		e.Settings[0].Of != "the thread" {
		t.Errorf("the thread goes on in %q: %+v", second.Folder, e)
	}
	if other, _ := run(func(t *tasks.Task) { t.Thread = "b" }); other.Folder != "web" {
		t.Errorf("a new thread starts in %q", other.Folder)
	}
	if third, _ := run(func(t *tasks.Task) { t.Options.Directory = "." }); third.Folder != "" || third.Resume == nil {
		t.Errorf("the request for the root starts in %q", third.Folder)
	}
	ran := len(r.agent.specs())
	if _, e := run(func(t *tasks.Task) { t.Options.Directory = "none" }); e.Kind != tasks.Refused ||
		!strings.Contains(e.Reason, `"none" of acme/api: the clone does not have it. Name another`) ||
		len(r.agent.specs()) > ran {
		t.Errorf("a directory that is not there: %+v", e)
	}
	if after, e := run(func(*tasks.Task) {}); after.Folder != "" || e.Kind != tasks.Answered {
		t.Errorf("after a refusal the thread goes on in %q: %+v", after.Folder, e)
	}
	r.declare("main", "directory: gone\n")
	if fourth, e := run(func(t *tasks.Task) { t.Thread = "c" }); fourth.Folder != "" || len(e.Settings) > 0 ||
		!strings.Contains(strings.Join(r.events(fourth.ID, agent.Notice), " "), "So it starts in the root. The directory is that of .github/errand.yml.") {
		t.Errorf("a setting that does not fit: %q, %+v", fourth.Folder, e)
	}
	r.foresees(`warning The directory "gone" of .github/errand.yml: the clone does not have it.`)
}

// A request cannot switch off the rules of the directory that a trusted repository sets.
func TestRequestsLeaveNoRulesBehind(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.push("refs/heads/main", map[string]string{"api/.claude/settings.json": "{}", environment.File: "directory: api\n"})
	r.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) { return answer("done"), nil }
	r.worker(r.disk(t.TempDir()), func(c *Config) {
		c.Policy.Repository = func(string) (rights.Repository, bool) {
			return rights.Repository{Trusted: true, Profile: agent.Write}, true
		}
	})
	for asked, kind := range map[string]tasks.EndingKind{".": tasks.Refused, ".github": tasks.Refused, "api": tasks.Answered} {
		task := r.repoTask("asked for " + asked)
		task.Options.Directory = asked
		e := r.ending(r.submit(task))
		if e.Kind != kind || kind == tasks.Refused && !strings.Contains(e.Reason, "its rules in api/.claude/settings.json hold only for") {
			t.Errorf("the request for %s: %+v", asked, e)
		}
	}
}

// A run that resumes elsewhere starts in the directory in which it began, although the setting has changed.
func TestResumedRunKeepsItsFolder(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "directory: .github\n")
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	first := <-r.started
	r.declare("main", "directory: .\n")
	stop()
	r.worker(r.disk(t.TempDir()))
	second := r.resumed(id)
	if first.Folder != ".github" || second.Folder != ".github" || second.Resume == nil ||
		!strings.Contains(second.Prompt.Text, "is "+filepath.Join(second.Dir, ".github")+" now; it was ") {
		t.Errorf("began in %q, goes on in %q: %s", first.Folder, second.Folder, second.Prompt.Text)
	}
}
