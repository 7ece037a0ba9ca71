package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/publish"
)

// hub is a forge with one pull request per branch. fail is called before the n-th call, counted from 1.
type hub struct {
	fail func(n int) error

	checks []string // that the repository wants
	name   string   // empty: github
	draft  bool     // what it says of pull requests

	mu    sync.Mutex
	works []forge.Proposal
	calls int
}

func (h *hub) commands(context.Context, string) ([]string, error) { return h.checks, nil }

func (h *hub) Name() string { return cmp.Or(h.name, "github") }

func (h *hub) Address(_ context.Context, _, login string) (string, error) {
	if login = cmp.Or(login, "bot"); login == "gone" {
		return "", forge.ErrNotFound
	}
	return fmt.Sprintf("%s <%d+%[1]s@users.noreply.github.com>", login, len(login)), nil
}

func (h *hub) Publish(_ context.Context, p forge.Proposal) (forge.PullRequestRef, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.fail != nil {
		if err := h.fail(h.calls); err != nil {
			return forge.PullRequestRef{}, err
		}
	}
	h.works = append(h.works, p)
	if n := map[string]int{"acme/web": 8}[p.Repo]; n > 0 {
		return forge.PullRequestRef{Number: n, URL: fmt.Sprint("https://hub.example/", n), Draft: h.draft}, nil
	}
	return forge.PullRequestRef{Number: 7, URL: "https://hub.example/7", Draft: h.draft}, nil
}

func (h *hub) proposed() []forge.Proposal {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.works)
}

// publishing is a fleet with a publisher whose agents edit as the test says.
func publishingFleet(t *testing.T, edit func(r *remote, s agent.Spec)) (*remote, *hub, func(*Config)) {
	t.Helper()
	r, h := newRemote(t), &hub{}
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		edit(r, s)
		return answer("I mended it."), nil
	}
	return r, h, func(c *Config) { c.Publisher, c.Commands = h, h.commands }
}

// pushed returns the commit subjects of a thread's branch at the remote, newest first.
func (r *remote) pushed(thread string) string {
	r.Helper()
	bare := r.bare()
	if r.git(bare, "branch", "--list", publish.Branch("", thread)) == "" {
		return ""
	}
	return strings.ReplaceAll(r.git(bare, "log", "--format=%s", "main.."+publish.Branch("", thread)), "\n", ", ")
}

// If a repository became read-only after the task was submitted, the task does not write to it.
func TestWorkIsNotPublishedAnyMore(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	id := r.submit(r.repoTask("a"))
	r.worker(r.disk(t.TempDir()), with, func(c *Config) {
		c.Policy.Repository = func(string) (rights.Repository, bool) {
			return rights.Repository{Profile: agent.Read}, true
		}
	})
	e := r.ending(id)
	if got := r.agent.specs()[0].Profile; got != agent.Read || e.Kind != tasks.Answered || e.Published != nil ||
		r.pushed("fake/a") != "" || len(h.proposed()) > 0 {
		t.Errorf("ran as %s, pushed %q, ending = %+v", got, r.pushed("fake/a"), e)
	}
}

// The title of a pull request is the subject of a commit, which the agent has written.
func TestTitleIsRedacted(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, func(r *remote, s agent.Spec) {
		r.git(s.Dir, "commit", "--quiet", "--allow-empty", "--message", "Use hunter-2-secret")
	})
	r.worker(r.disk(t.TempDir()), with, func(c *Config) { c.Policy.Redactor = agent.NewRedactor("hunter-2-secret") })
	e := r.ending(r.submit(r.repoTask("a")))
	if got := h.proposed(); len(got) != 1 || got[0].Title != "Use [redacted]" {
		t.Errorf("proposed %+v, ending = %+v", got, e)
	}
}

func TestWorkIsPublished(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	r.worker(r.disk(t.TempDir()), with)
	first := r.repoTask("a")
	e := r.ending(r.submit(first))
	want := forge.Proposal{
		Repo: "acme/api", Branch: publish.Branch("", "fake/a"), Base: "main", Title: "work", Summary: "I mended it.",
		Run: first.ID, Thread: "fake/a", Source: "fake", Asker: first.Actor,
	}
	works := h.proposed()
	if len(works) != 1 {
		t.Fatalf("proposed %+v", works)
	}
	want.Commit = works[0].Commit
	if !reflect.DeepEqual(works[0], want) ||
		want.Commit != r.git(r.bare(), "rev-parse", want.Branch) {
		t.Errorf("proposed %+v, want %+v", works[0], want)
	}
	if e.Kind != tasks.Answered || e.Note() != "Pull request acme/api#7: https://hub.example/7 · 3 files, +3 −1" {
		t.Errorf("ending = %+v, %q", e, e.Note())
	}
	if got := r.pushed("fake/a"); got != "Do it, work" {
		t.Errorf("pushed %s", got)
	}
	s, err := r.desk.Status(t.Context(), first.ID)
	if err != nil || s.Ending.Published.PullRequest.Number != 7 || s.Ending.Published.Due {
		t.Errorf("stored %+v, %v", s.Ending.Published, err)
	}
	// The conversation of the pull request is that of the thread.
	if got, err := r.store.Threads.Resolve(t.Context(), "github/acme/api#7"); err != nil || got != "fake/a" {
		t.Errorf("its conversation is %s, %v", got, err)
	}
	if about := r.agent.specs()[0].System; !strings.Contains(about, "draft pull request") ||
		strings.Contains(about, "nothing is published") {
		t.Errorf("the agent got %s", about)
	}

	// The next task of the thread, on another disk, continues there.
	r.stopAll()
	r.worker(r.disk(t.TempDir()), with)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "again\n")
		return answer("I mended it again."), nil
	}
	e = r.ending(r.submit(r.repoTask("a")))
	if got := r.pushed("fake/a"); got != "Do it, Do it, work" || e.Published.Branch != want.Branch {
		t.Errorf("pushed %s", got)
	}
	if about := r.agent.specs()[1].System; !strings.Contains(about, "starts from your published work") ||
		!strings.Contains(about, "origin/"+want.Branch) {
		t.Errorf("the agent got %s", about)
	}
}

// After its pull request was merged as one commit, the agent is told to begin new work at the base. Then the next pull
// request of the thread has only that, whether the branch was deleted or not.
func TestWorkAfterASquashMerge(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"the branch stays": false, "the branch is deleted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _, with := publishingFleet(t, func(r *remote, s agent.Spec) {
				if len(r.agent.specs()) == 1 {
					r.everything(s)
					return
				}
				before, _, told := strings.Cut(s.System, " has your earlier work as other commits")
				if told {
					r.git(s.Dir, "reset", "--quiet", "--hard", before[strings.LastIndex(before, " ")+1:])
				}
				r.write(s.Dir, "second.txt", "second\n")
			})
			r.worker(r.disk(t.TempDir()), with)
			r.ending(r.submit(r.repoTask("a")))
			branch := publish.Branch("", "fake/a")
			squashed := r.git(r.bare(), "commit-tree", "-p", "main", "-m", "Squashed (#7)", branch+"^{tree}")
			r.git(r.bare(), "update-ref", "refs/heads/main", squashed)
			if deleted {
				r.git(r.bare(), "branch", "-D", branch)
			}
			r.ending(r.submit(r.repoTask("a")))
			if got := r.pushed("fake/a"); got != "Do it" {
				t.Errorf("pushed %s", got)
			}
		})
	}
}

func TestNothingIsPublished(t *testing.T) {
	t.Parallel()
	reads := func(_ *remote, _ agent.Spec) {}
	for name, c := range map[string]struct {
		edit   func(*remote, agent.Spec)
		change func(*remote, *tasks.Task, *hub)
	}{
		"nothing done": {reads, func(*remote, *tasks.Task, *hub) {}},
		"read only":    {(*remote).everything, func(_ *remote, t *tasks.Task, _ *hub) { t.Profile = agent.Read }},
		"untrusted":    {(*remote).everything, func(_ *remote, t *tasks.Task, _ *hub) { t.Profile = agent.Untrusted }},
		"failed": {(*remote).everything, func(r *remote, _ *tasks.Task, _ *hub) {
			done := r.agent.do
			r.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
				res, err := done(ctx, s, h)
				res.Outcome, res.Error = agent.Failed, agent.NewError(agent.ClassInternal, "x")
				return res, err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, c.edit)
			task := r.repoTask("a")
			c.change(r, &task, h)
			r.worker(r.disk(t.TempDir()), with)
			if e := r.ending(r.submit(task)); e.Published != nil || e.Note() != "" {
				t.Errorf("ending = %+v", e)
			}
			if got := r.pushed("fake/a"); got != "" || len(h.proposed()) > 0 {
				t.Errorf("pushed %s, proposed %+v", got, h.proposed())
			}
			if about := r.agent.specs()[0].System; strings.Contains(about,
				"pull request") != (task.Profile == agent.Write) {
				t.Errorf("the agent got %s", about)
			}
		})
	}
	t.Run("no publisher", func(t *testing.T) {
		t.Parallel()
		r, _, _ := publishingFleet(t, (*remote).everything)
		r.worker(r.disk(t.TempDir()))
		if e := r.ending(r.submit(r.repoTask("a"))); e.Published != nil || r.pushed("fake/a") != "" {
			t.Errorf("ending = %+v", e)
		}
	})
}

// A failed push loses neither the answer nor the work; the next task of the thread publishes it.
func TestRefusedPushIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stuck  int
		refuse bool
		want   string
	}{
		"remote": {
			0, true,
			"publish acme/api: the remote refused the push: pre-receive hook declined: No workflows, [redacted]. They are kept",
		},
		"stuck": {1, false, "a process of the run could not be stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, (*remote).everything)
			hook := filepath.Join(r.root, "acme", "api.git", "hooks", "pre-receive")
			if c.refuse {
				if err := os.WriteFile(hook,
					[]byte("#!/bin/sh\necho 'No workflows, s3cret-value' >&2\nexit 1\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			do := r.agent.do
			r.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
				res, err := do(ctx, s, h)
				res.Resources.Stuck = c.stuck
				return res, err
			}
			r.hides() // the remote may quote a secret
			r.worker(r.disk(t.TempDir()), with)
			e := r.ending(r.submit(r.repoTask("a")))
			if e.Kind != tasks.Answered || e.Result.Text != "I mended it." || !strings.Contains(e.Note(), c.want) ||
				len(h.proposed()) > 0 {
				t.Errorf("ending = %+v, %q", e, e.Note())
			}
			_ = os.Remove(hook)
			r.agent.do = nil
			e = r.ending(r.submit(r.repoTask("a")))
			if got := r.pushed("fake/a"); got != "Do it, work" || e.Published.PullRequest.Number != 7 {
				t.Errorf("pushed %s, %+v", got, e.Published)
			}
		})
	}
}

// A pending push is done before the answer is posted, unless that would take too long.
func TestPullRequestIsDue(t *testing.T) {
	t.Parallel()
	away := errors.New("GitHub is away")
	for name, c := range map[string]struct {
		fail  func(n int) error
		want  string
		calls int
	}{
		"away at first": {func(n int) error {
			if n < 3 {
				return away
			}
			return nil
		}, "Pull request acme/api#7: ", 3},
		"limited for a moment": {func(n int) error {
			if n < 2 {
				return &tasks.ErrLater{At: time.Now(), Why: "limited"}
			}
			return nil
		}, "Pull request acme/api#7: ", 2},
		"limited for long": {
			func(int) error { return &tasks.ErrLater{At: time.Now().Add(time.Hour), Why: "limited"} },
			"could not be opened. Ask again here to retry.", 2,
		},
		"not allowed": {func(int) error { return &tasks.InputError{Sentence: "No access."} }, "is on branch", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, (*remote).everything)
			h.fail = c.fail
			r.worker(r.disk(t.TempDir()), with)
			e := r.ending(r.submit(r.repoTask("a")))
			if c.want == "is on branch" {
				c.want = "The changes are on branch " + publish.Branch("", "fake/a") +
					" of acme/api, without a pull request: No access."
			}
			if e.Result.Text != "I mended it." || !strings.Contains(e.Note(), c.want) {
				t.Errorf("ending = %+v, %q", e, e.Note())
			}
			if h.calls != c.calls {
				t.Errorf("%d calls, want %d", h.calls, c.calls)
			}
			// The thread's next task publishes it, although it changes nothing.
			h.fail, r.agent.do = nil, nil
			if e := r.ending(r.submit(r.repoTask("a"))); e.Published == nil || e.Published.PullRequest.Number != 7 {
				t.Errorf("the next ending = %+v", e.Published)
			}
		})
	}
}

// hangingHub opens no pull request until its context ends, which it notes.
type hangingHub struct {
	*hub
	until time.Time
}

func (h *hangingHub) Publish(ctx context.Context, _ forge.Proposal) (forge.PullRequestRef, error) {
	h.until, _ = ctx.Deadline()
	return forge.PullRequestRef{}, context.DeadlineExceeded
}

// postingSource notes until when the final message can be posted.
type postingSource struct {
	*fakeSource
	until time.Time
}

func (s *postingSource) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	s.until, _ = ctx.Deadline()
	return s.fakeSource.Open(ctx, t)
}

// A forge that hangs leaves time for posting the answer.
func TestAnswerWhileTheForgeHangs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	h, s := &hangingHub{hub: &hub{}}, &postingSource{fakeSource: f.source}
	w := f.idle(func(c *Config) { c.Publisher, c.Sources = h, []tasks.Source{s} })
	id := f.submit(f.task("a", "x"))
	c, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	e := tasks.Ending{
		Kind: tasks.Answered, At: time.Now().Add(-time.Hour),
		Published: &tasks.Published{Due: true, Work: tasks.Work{Repo: "acme/api", Branch: "errand/x"}},
	}
	if err := c.End(t.Context(), e.Encode()); err != nil {
		t.Fatal(err)
	}
	w.outbox.Post(t.Context(), id, nil)
	if e := f.ending(id); !strings.Contains(e.Note(), "could not be opened") {
		t.Errorf("%q", e.Note())
	}
	if left := s.until.Sub(h.until); h.until.IsZero() || left < 15*time.Second {
		t.Errorf("the forge leaves %s", left)
	}
}

// A worker that was replaced pushes nothing, and its push is not reported.
func TestReplacedWorkerPushesNothing(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	taken, again := make(chan struct{}), make(chan struct{})
	do := r.agent.do
	r.agent.do = func(ctx context.Context, s agent.Spec, host agent.Host) (agent.Result, error) {
		res, err := do(ctx, s, host)
		if len(r.agent.specs()) == 1 {
			r.crash(s.ID)
			close(taken)
		} else {
			<-again
		}
		return res, err
	}
	// One that has not noticed yet: the store refuses it.
	unaware := func(c *Config) {
		c.Store = r.open(store.Config{Redis: r.redis(), ClaimTTL: 2 * time.Minute, Refresh: time.Minute})
	}
	stop := r.worker(r.disk(t.TempDir()), with, dying, unaware)
	id := r.submit(r.repoTask("a"))
	<-taken
	stop()
	if got := r.pushed("fake/a"); got != "" || len(h.proposed()) > 0 {
		t.Errorf("the replaced worker pushed %s", got)
	}
	close(again)
	r.worker(r.disk(t.TempDir()), with)
	r.ending(id)
	if got := r.pushed("fake/a"); got != "Do it, work" || len(h.proposed()) != 1 {
		t.Errorf("pushed %s, proposed %+v", got, h.proposed())
	}
}

// An answer is not dropped because Redis was unreachable for so long that the claim is no longer certain, as long as no
// other worker holds it. Its work is kept and not published.
func TestAnswerAfterAnOutage(t *testing.T) {
	t.Parallel()
	r, h, with := publishingFleet(t, (*remote).everything)
	do := r.agent.do
	r.agent.do = func(ctx context.Context, s agent.Spec, host agent.Host) (agent.Result, error) {
		if len(r.agent.specs()) > 1 {
			return answer("It is mended."), nil
		}
		res, err := do(ctx, s, host)
		if err := r.redis().ClientPause(r.Context(), 4*time.Second).Err(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return res, err
	}
	impatient := func(c *Config) {
		c.Store = r.open(store.Config{
			Redis: r.redis(), ClaimTTL: 3 * time.Second, Refresh: 200 * time.Millisecond, Outage: 2 * time.Second,
		})
	}
	r.worker(r.disk(t.TempDir()), with, dying, impatient)
	e := r.ending(r.submit(r.repoTask("a")))
	if e.Kind != tasks.Answered || e.Result.Text != "I mended it." || !strings.Contains(e.Note(), "They are kept") {
		t.Errorf("ending = %+v, %q", e, e.Note())
	}
	if n := len(r.agent.specs()); n != 1 || r.pushed("fake/a") != "" {
		t.Errorf("%d runs, pushed %s", n, r.pushed("fake/a"))
	}
	if e := r.ending(r.submit(r.repoTask("a"))); len(h.proposed()) != 1 || e.Published.PullRequest.Number != 7 {
		t.Errorf("the next ending = %+v", e.Published)
	}
}

// If a worker dies between push and pull request, the next one continues with the branch, also if its own work does not
// build on it.
func TestCrashAfterThePush(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"elsewhere": false, "same disk": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, with := publishingFleet(t, func(r *remote, s agent.Spec) {
				if len(r.agent.specs()) == 1 {
					r.everything(s)
					saved := answer("so far").Session
					saved.Data = append(saved.Data, line(s.Prompt.ID)...)
					s.Checkpoint(r.Context(), saved)
				}
				r.write(s.Dir, "README.md", "in the end\n")
			})
			disk := t.TempDir()
			id := r.repoTask("a").ID
			crashed := make(chan struct{})
			h.fail = func(n int) error {
				if n > 1 {
					return nil
				}
				r.crash(id)
				close(crashed)
				return errors.New("the worker has died")
			}
			stop := r.worker(r.disk(disk), with, dying)
			task := r.task("a", "do it")
			task.ID, task.Repo, task.Profile = id, "acme/api", agent.Write
			r.submit(task)
			<-crashed
			stop()
			if !same {
				disk = t.TempDir()
			}
			r.worker(r.disk(disk), with)
			e := r.ending(id)
			if got := r.pushed("fake/a"); got != "Do it, work" || e.Published.PullRequest.Number != 7 {
				t.Errorf("pushed %s, ending %+v", got, e.Published)
			}
			bare := r.bare()
			if got := r.git(bare, "show", publish.Branch("", "fake/a")+":README.md"); got != "in the end" ||
				len(h.proposed()) != 1 {
				t.Errorf("README.md is %q, proposed %+v", got, h.proposed())
			}
		})
	}
}

// A stranger's commits are not in the clone in which the thread works later, although both are in the same repository.
func TestStrangersContentStaysApart(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		return answer(r.files(s.Dir)["README.md"]), nil
	}
	r.push("refs/pull/7/head", map[string]string{"README.md": "a stranger's\n"})
	r.worker(r.disk(filepath.Join(r.root, "disk")))

	theirs := r.repoTask("t")
	theirs.Ref, theirs.Profile = "refs/pull/7/head", agent.Untrusted
	if e := r.ending(r.submit(theirs)); e.Result.Text != "a stranger's\n" {
		t.Errorf("theirs: %+v", e)
	}
	if e := r.ending(r.submit(r.repoTask("t"))); e.Result.Text != "one\n" {
		t.Errorf("ours: %+v", e)
	}
}
