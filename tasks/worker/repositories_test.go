package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/hostlist"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// second adds the repository acme/web.
func (r *remote) second() {
	r.Helper()
	r.git(r.root, "clone", "--quiet", "--bare", r.bare(),
		filepath.Join(r.root, "acme", "web.git"))
}

// both is a task in both repositories.
func (r *remote) both(thread string) tasks.Task {
	t := r.repoTask(thread)
	t.Also = []string{"acme/web"}
	return t
}

// inBoth does the same in each clone of a run.
func (r *remote) inBoth(s agent.Spec) {
	r.Helper()
	if len(s.Also) != 1 {
		r.Errorf("further clones: %+v", s.Also)
		return
	}
	r.everything(s)
	r.everything(agent.Spec{Dir: s.Also[0].Dir})
}

// in returns the subjects of a thread's commits in a repository, newest first; empty if there is no branch.
func (r *remote) in(repo, thread string) string {
	r.Helper()
	bare := filepath.Join(r.root, repo+".git")
	if r.git(bare, "branch", "--list", publish.Branch("", thread)) == "" {
		return ""
	}
	return strings.ReplaceAll(r.git(bare, "log", "--format=%s", "main.."+publish.Branch("", thread)), "\n", ", ")
}

// A run in two repositories opens a pull request in each, and each names the other. The commits of both are signed.
// Comments on either continue the conversation.
func TestSeveralRepositories(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).inBoth)
	r.second()
	disk, verified := r.signsWith()
	r.worker(disk, with)
	task := r.both("a")
	e := r.ending(r.submit(task))
	if e.Kind != tasks.Answered || e.Published == nil || len(e.Also) != 1 {
		t.Fatalf("ending = %+v", e)
	}
	branch := publish.Branch("", "fake/a")
	for _, repo := range []string{"acme/api", "acme/web"} {
		if got := verified(repo + ":" + branch); got != "Do it, work" {
			t.Errorf("pushed %s to %s", got, repo)
		}
	}
	if got, want := e.Note(),
		"Pull request acme/api#7: https://hub.example/7 · 3 files, +3 −1\nPull request acme/web#8: https://hub.example/8"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var works []string
	for _, p := range h.proposed() {
		works = append(works, fmt.Sprintf("%s %d with %s", p.Repo, p.Number, strings.Join(p.Together, ",")))
		if p.Branch != branch || p.Base != "main" ||
			p.Commit != r.git(filepath.Join(r.root, p.Repo+".git"), "rev-parse", branch) {
			t.Errorf("proposed %+v", p)
		}
	}
	if want := []string{
		"acme/api 0 with ", "acme/web 0 with acme/api#7", "acme/api 7 with acme/web#8",
	}; !slices.Equal(works, want) {
		t.Errorf("proposed %q, want %q", works, want)
	}
	for _, conversation := range []string{"github/acme/api#7", "github/acme/web#8"} {
		if got, err := r.store.Threads.Resolve(t.Context(), conversation); err != nil || got != "fake/a" {
			t.Errorf("%s is %s, %v", conversation, got, err)
		}
	}
	s := r.agent.specs()[0]
	if !strings.Contains(s.System, "A clone of acme/web is in "+s.Also[0].Dir+"; origin/main is its base.") ||
		strings.Count(s.System, "with a draft pull request") != 2 || len(s.Reads) != 2 {
		t.Errorf("the agent got %s, and reads %v", s.System, s.Reads)
	}
	st, err := r.desk.Status(t.Context(), task.ID)
	if err != nil || len(st.Ending.Also) != 1 || st.Ending.Also[0].PullRequest.Number != 8 {
		t.Errorf("stored %+v, %v", st.Ending, err)
	}

	// A comment on the second pull request goes on there, and the first clone and branch stay as they are.
	next := r.task("a", "and the other?")
	next.Repo, next.Profile = "acme/web", agent.Write
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "again\n")
		return answer("Again."), nil
	}
	e = r.ending(r.submit(next))
	if e.Published == nil || e.Published.Repo != "acme/web" || len(e.Also) > 0 {
		t.Errorf("ending = %+v", e)
	}
	if got := r.in("acme/web", "fake/a"); got != "And the other?, Do it, work" {
		t.Errorf("pushed %s", got)
	}
	if got := r.agent.specs()[1].Dir; got != s.Also[0].Dir {
		t.Errorf("went on in %s, not %s", got, s.Also[0].Dir)
	}
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if got := r.files(s.Dir)["README.md"]; got != "changed\n" {
			t.Errorf("the first clone has %q", got)
		}
		r.write(s.Dir, "README.md", "third\n")
		return answer("Third."), nil
	}
	if e = r.ending(r.submit(r.both("a"))); len(e.Also) != 1 || r.in("acme/api", "fake/a") != "Do it, Do it, work" ||
		r.in("acme/web", "fake/a") != "And the other?, Do it, work" {
		t.Errorf("ending = %+v", e)
	}
}

// A request that names a branch, as in Slack, starts there in the main repository. Further clones keep their work.
func TestBranchIsOfTheMainRepository(t *testing.T) {
	t.Parallel()
	r, _, with := publishingFleet(t, (*remote).inBoth)
	r.second()
	r.worker(r.disk(t.TempDir()), with)
	r.ending(r.submit(r.both("a")))
	r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{}, nil } // without Keep
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		for dir, want := range map[string]string{s.Dir: "one\n", s.Also[0].Dir: "changed\n"} {
			if got := r.files(dir)["README.md"]; got != want {
				t.Errorf("%s has %q, want %q", dir, got, want)
			}
		}
		r.write(s.Also[0].Dir, "other.txt", "x\n")
		return answer("Second."), nil
	}
	next := r.both("a")
	next.Ref = "main"
	if e := r.ending(r.submit(next)); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	if got := r.in("acme/web", "fake/a"); got != "Do it, Do it, work" {
		t.Errorf("pushed %q", got)
	}
}

// Only the repositories with changes get pull requests, and each failure names its repository.
func TestSomeRepositoriesArePublished(t *testing.T) {
	t.Parallel()
	t.Run("only the second", func(t *testing.T) {
		t.Parallel()
		r, h, with := publishingFleet(t, func(r *remote, s agent.Spec) { r.everything(agent.Spec{Dir: s.Also[0].Dir}) })
		r.second()
		r.worker(r.disk(t.TempDir()), with)
		e := r.ending(r.submit(r.both("a")))
		if e.Published == nil || e.Published.Repo != "acme/web" || len(e.Also) > 0 || len(h.proposed()) != 1 ||
			r.in("acme/api", "fake/a") != "" {
			t.Errorf("ending = %+v, proposed %+v", e, h.proposed())
		}
	})
	t.Run("a check of the first that cannot be ended", func(t *testing.T) {
		t.Parallel()
		r, h, with := publishingFleet(t, (*remote).inBoth)
		r.second()
		h.checks = []string{"make test"}
		r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
			if s.Repo != "acme/api" {
				t.Errorf("a check of %s ran", s.Repo)
			}
			return agent.Scripted{Outcome: agent.Failed, Stuck: 1}, nil
		}
		r.worker(r.disk(t.TempDir()), with)
		e := r.ending(r.submit(r.both("a")))
		if note := e.Note(); strings.Count(note, "a process of the checks could not be stopped") != 2 ||
			r.in("acme/api", "fake/a")+r.in("acme/web", "fake/a") != "" {
			t.Errorf("%q, pushed %q and %q", note, r.in("acme/api", "fake/a"), r.in("acme/web", "fake/a"))
		}
	})
	t.Run("a file that is too large in the second", func(t *testing.T) {
		t.Parallel()
		r, h, with := publishingFleet(t, func(r *remote, s agent.Spec) {
			r.everything(s)
			r.write(s.Also[0].Dir, "large", strings.Repeat("x", 101<<20))
		})
		r.second()
		r.worker(r.disk(t.TempDir()), with)
		e := r.ending(r.submit(r.both("a")))
		if note := e.Note(); !strings.Contains(note, "Pull request acme/api#7") ||
			!strings.Contains(note, "\nacme/web: The changes were not published: publish acme/web: ") ||
			len(h.proposed()) != 1 {
			t.Errorf("%q", note)
		}
	})
}

// The pull requests are opened and linked by the outbox if the forge is away at first.
func TestLinksAreDue(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string][]int{"both": {1, 2}, "the second": {2}, "the link": {3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, (*remote).inBoth)
			r.second()
			h.fail = func(n int) error {
				if slices.Contains(failing, n) {
					return errors.New("GitHub is away")
				}
				return nil
			}
			r.worker(r.disk(t.TempDir()), with)
			e := r.ending(r.submit(r.both("a")))
			if note := e.Note(); !strings.Contains(note, "Pull request acme/api#7") ||
				!strings.Contains(note, "Pull request acme/web#8") {
				t.Errorf("%q", note)
			}
			last := map[string]string{}
			for _, p := range h.proposed() {
				last[p.Repo] = strings.Join(p.Together, ",")
			}
			if last["acme/api"] != "acme/web#8" || last["acme/web"] != "acme/api#7" {
				t.Errorf("linked %v", last)
			}
		})
	}
}

// A worker that dies between the first push and the second one loses nothing: another one opens both pull requests.
func TestCrashBetweenPushes(t *testing.T) {
	t.Parallel()
	r, h, _ := publishingFleet(t, nil)
	r.second()
	var runs atomic.Int32
	r.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if runs.Add(1) == 1 {
			r.inBoth(s)
			saved := answer("so far").Session
			saved.Data = append(saved.Data, line(s.Prompt.ID)...)
			s.Checkpoint(ctx, saved)
		}
		return answer("I mended both."), nil
	}
	id, died := "", make(chan struct{})
	stop := r.worker(r.disk(t.TempDir()), dying, func(c *Config) {
		c.Publisher = h
		c.Commands = func(_ context.Context, repo string) ([]string, error) {
			if repo == "acme/web" && r.in("acme/api", "fake/a") != "" {
				r.crash(id)
				close(died)
			}
			return nil, nil
		}
	})
	task := r.both("a")
	id = task.ID
	r.submit(task)
	<-died
	stop()
	if api, web := r.in("acme/api", "fake/a"), r.in("acme/web", "fake/a"); api != "Do it, work" || web != "" {
		t.Fatalf("before: %q, %q", api, web)
	}
	r.worker(r.disk(t.TempDir()), func(c *Config) { c.Publisher = h })
	e := r.ending(id)
	if note := e.Note(); !strings.Contains(note, "Pull request acme/api#7") ||
		!strings.Contains(note, "Pull request acme/web#8") {
		t.Errorf("%q, %+v", note, e)
	}
	if api, web := r.in("acme/api", "fake/a"), r.in("acme/web", "fake/a"); api != "Do it, work" ||
		web != "Do it, work" {
		t.Errorf("after: %q, %q", api, web)
	}
}

// An interrupted run goes on at another worker with the changes in all clones.
func TestAllClonesAreHandedOver(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.second()
	r.work = r.inBoth
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.both("a"))
	<-r.started
	stop()
	r.worker(r.disk(t.TempDir()))
	s := r.resumed(id)
	for _, dir := range []string{s.Dir, s.Also[0].Dir} {
		if got := r.files(dir); got["README.md"] != "changed\n" || got["untracked.txt"] != "untracked\n" ||
			got["committed.txt"] != "committed\n" {
			t.Errorf("%s has %v", dir, got)
		}
	}
	if s.Prompt.Text == "" || strings.Contains(s.Prompt.Text, "could not be saved") {
		t.Errorf("prompt %q", s.Prompt.Text)
	}
}

// The agent learns what could not be saved of a further clone.
func TestUnsavedFurtherClone(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.second()
	r.work = func(s agent.Spec) {
		r.everything(s)
		r.git(s.Also[0].Dir, "update-ref", "-d", "HEAD")
	}
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.both("a"))
	<-r.started
	stop()
	r.worker(r.disk(t.TempDir()))
	if s := r.resumed(id); !strings.Contains(s.Prompt.Text,
		"Your commits and changes in acme/web could not be saved.") {
		t.Errorf("prompt %q", s.Prompt.Text)
	}
}

// A run in several repositories reaches only what runs in each of them reach, gets none of their secrets, and trusts
// their settings only if all are trusted. Registries and credentials have to be for all of them. Later runs in one of
// the clones, where code of the others may be, get no more.
func TestLimitsOfSeveralRepositories(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.second()
	list := func(hosts ...string) environment.Declaration {
		return environment.Declaration{Egress: hostlist.List{Mode: hostlist.Listed, Hosts: hosts}}
	}
	known := map[string]rights.Repository{
		"acme/api": {Trusted: true, Environment: list("a.example", "both.example", "x.wild.example")},
		"acme/web": {Environment: list("both.example", "*.wild.example", "b.example")},
	}
	h := &hub{checks: []string{"make test"}}
	r.git(r.root, "clone", "--quiet", "--bare", r.bare(),
		filepath.Join(r.root, "acme", "lib.git"))
	var space *workspace.Workspace
	var checked []agent.Script
	r.agent.script = func(_ context.Context, s agent.Script) (agent.Scripted, error) {
		checked = append(checked, s)
		return agent.Scripted{Outcome: agent.Done}, nil
	}
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if len(s.Also) == 1 && s.Also[0].Dir != "" {
			r.inBoth(s)
		}
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()), func(c *Config) {
		c.Publisher, c.Commands, space = h, h.commands, c.Workspace
		c.Policy.Repository = func(name string) (rights.Repository, bool) { return known[name], true }
		c.Exposed = func(repo string) map[string]string { return map[string]string{"TOKEN": "secret of " + repo} }
	})
	r.ending(r.submit(r.repoTask("a")))
	alone := r.agent.specs()[0]
	if !alone.TrustedConfig || alone.Secrets["TOKEN"] != "secret of acme/api" || len(alone.Egress.Hosts) != 3 {
		t.Errorf("alone: %+v", alone)
	}
	r.ending(r.submit(r.both("b")))
	s, want := r.agent.specs()[1], []string{"both.example", "x.wild.example"}
	if s.TrustedConfig || len(s.Secrets) > 0 || !slices.Equal(s.Egress.Hosts, want) ||
		s.Egress.Mode != hostlist.Listed {
		t.Errorf("together: trusted %v, secrets %v, reaches %v", s.TrustedConfig, s.Secrets, s.Egress)
	}
	if len(checked) != 2 || checked[0].Repo != "acme/api" || checked[1].Repo != "acme/web" ||
		checked[1].Dir != s.Also[0].Dir {
		t.Fatalf("checks: %+v", checked)
	}
	for _, c := range checked {
		if len(c.Secrets) > 0 || !slices.Equal(c.Egress.Hosts, want) || len(c.Also) != 1 || c.Also[0].Repo == c.Repo ||
			c.Also[0].Dir != "" {
			t.Errorf("the check of %s reaches %v with %v, also of %v", c.Repo, c.Egress, c.Secrets, c.Also)
		}
	}

	r.ending(r.submit(r.repoTask("b")))
	after := r.agent.specs()[2]
	if after.Dir != s.Dir || len(after.Secrets) > 0 || !slices.Equal(after.Also, []agent.Also{{Repo: "acme/web"}}) ||
		!slices.Equal(after.Egress.Hosts, want) {
		t.Errorf("afterwards: secrets %v, also %v, reaches %v", after.Secrets, after.Also, after.Egress)
	}
	more := r.both("b")
	more.Repo, more.Also = "acme/web", []string{"acme/lib"}
	r.ending(r.submit(more))
	if others := r.agent.specs()[3].Also; len(others) != 2 || others[0].Repo != "acme/lib" || others[0].Dir == "" ||
		others[1] != (agent.Also{Repo: "acme/api"}) {
		t.Errorf("the others: %v", others)
	}
	if with, err := workspace.CodeIn(space, "fake/b", "acme/lib"); err != nil ||
		!slices.Equal(with, []string{"acme/api", "acme/web"}) {
		t.Errorf("the third clone has code of %v, %v", with, err)
	}
}

// A new clone of published work has code of the other repositories, too: a run there gets no secrets at any worker.
func TestCodeOfOthersIsKnownElsewhere(t *testing.T) {
	t.Parallel()
	r, _, with := publishingFleet(t, (*remote).inBoth)
	r.second()
	exposed := func(c *Config) {
		c.Exposed = func(repo string) map[string]string { return map[string]string{"TOKEN": "secret of " + repo} }
	}
	stop := r.worker(r.disk(t.TempDir()), with, exposed)
	r.ending(r.submit(r.both("a")))
	stop()
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if got := r.files(s.Dir)["README.md"]; got != "changed\n" {
			t.Errorf("the new clone has %q", got)
		}
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()), with, exposed)
	r.ending(r.submit(r.repoTask("a")))
	s := r.agent.specs()[1]
	if len(s.Secrets) > 0 || !slices.Equal(s.Also, []agent.Also{{Repo: "acme/web"}}) {
		t.Errorf("secrets %v, also %v", s.Secrets, s.Also)
	}
}

// The instructions of a trusted repository are published as they are, also if a run uses none because of another
// repository.
func TestInstructionsBesideAnUntrustedRepository(t *testing.T) {
	t.Parallel()
	n := 0
	r, h, with := publishingFleet(t, func(r *remote, s agent.Spec) {
		n++
		r.write(s.Dir, "README.md", fmt.Sprint("round ", n, "\n"))
	})
	r.second()
	r.push("refs/heads/main", map[string]string{"rules.md": "be kind\n", "CLAUDE.md": "see @rules.md\n"})
	r.worker(r.disk(r.TempDir()), with, func(c *Config) {
		c.Policy.Repository = func(name string) (rights.Repository, bool) {
			return rights.Repository{Trusted: name == "acme/api"}, true
		}
	})
	for i, task := range []tasks.Task{r.repoTask("a"), r.both("a"), r.both("a"), r.repoTask("a")} {
		if e := r.ending(r.submit(task)); e.Published == nil || e.Published.Problem != "" {
			t.Fatalf("ending = %+v", e)
		}
		if s := r.agent.specs()[i]; s.TrustedConfig != (len(task.Also) == 0) {
			t.Errorf("run %d trusts: %v", i, s.TrustedConfig)
		}
		bare := r.bare()
		if got := r.git(bare, "show", publish.Branch("", "fake/a")+":CLAUDE.md"); got != "see @rules.md" {
			t.Errorf("pushed %q after run %d", got, i)
		}
		if got := r.git(bare, "diff", "--name-only", "main", publish.Branch("", "fake/a")); got != "README.md" {
			t.Errorf("pushed %q after run %d", got, i)
		}
	}
	if len(h.proposed()) != 4 {
		t.Errorf("proposed %+v", h.proposed())
	}
}

// Automatic work does not continue a conversation about other repositories, and the conversation goes on without it.
func TestUnaskedRunIsApart(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.second()
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		return answer("echo: " + s.Prompt.Text), nil
	}
	r.worker(r.disk(t.TempDir()), r.limit(&accounts{}))
	r.ending(r.submit(r.both("a")))
	both, one, asked := r.both("a"), r.repoTask("a"), r.repoTask("a")
	both.Unasked, one.Unasked, one.Prompt = true, true, "fix it"
	for _, task := range []tasks.Task{both, one, asked} {
		if e := r.ending(r.submit(task)); e.Kind != tasks.Answered {
			t.Fatalf("ending %+v", e)
		}
	}
	specs := r.agent.specs()
	if specs[1].Resume == nil || specs[2].Resume != nil || len(specs[2].History) > 0 || specs[2].Dir != specs[1].Dir {
		t.Errorf("in both: %+v, in one: %+v", specs[1], specs[2])
	}
	for i, s := range specs {
		if (s.Files == specs[0].Files) == (i == 2) {
			t.Errorf("run %d has files in %s, the first one in %s", i, s.Files, specs[0].Files)
		}
	}
	if s := specs[3]; s.Resume == nil || slices.ContainsFunc(s.History, func(turn agent.Turn) bool {
		return turn.Text == "fix it"
	}) {
		t.Errorf("asked: %+v", s)
	}
}

// A clone that was damaged in the meantime is restored, and the intact one beside it is kept with all its files.
func TestDamagedCloneBesideAnIntactOne(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]int{"the main one": 0, "the further one": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.second()
			r.work = r.inBoth
			disk := r.disk(t.TempDir())
			stop := r.worker(disk)
			id := r.submit(r.both("a"))
			first := <-r.started
			stop()
			r.write(filepath.Join([]string{first.Dir, first.Also[0].Dir}[damaged], ".git"), "HEAD", "x")
			r.worker(disk)
			s := r.resumed(id)
			for i, dir := range []string{s.Dir, s.Also[0].Dir} {
				if got := r.files(dir); got["README.md"] != "changed\n" ||
					(got["ignored.log"] == "") != (i == damaged) {
					t.Errorf("clone %d has %v", i, got)
				}
			}
			if told := strings.Contains(s.Prompt.Text, "Your clone was restored"); told != (damaged == 0) {
				t.Errorf("prompt %q", s.Prompt.Text)
			}
		})
	}
}
