package github

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const (
	ownBranch  = "errand/slack-1a2b3c4d5e"
	createPull = "POST /repos/{o}/{r}/pulls"
	listPulls  = "GET /repos/{o}/{r}/pulls"
	editPull   = "PATCH /repos/{o}/{r}/pulls/{n}"
)

// work commits on the thread's branch and tells what a run would have left there.
func (w *world) work(n int) (tasks.Task, tasks.Work) {
	w.Helper()
	sha := must(w.repo.Commit(ownBranch, "", map[string]string{"main.go": "package main // " + strings.Repeat("x", n) + "\n"}, "Mend the total"))
	task := tasks.Task{
		ID: tasks.NewID(time.Unix(1_790_000_000+int64(n), 0), "slack", "c1"), Source: "slack", Thread: "slack/T1/C1/1.2", Repo: repo,
		Profile: agent.Write, Actor: "ann", Prompt: "mend it",
	}
	work := tasks.Work{
		Repo: repo, Branch: ownBranch, Base: "main", Commit: sha, Title: "Mend the total",
		Summary: "I added cents to cents, @octocat.\n\n```go\ntotal++\n",
	}
	return task, work
}

// started makes our branch.
func (w *world) started() *world {
	w.Helper()
	must(w.repo.Commit(ownBranch, "main", nil, "begin"))
	return w
}

func (w *world) propose(t tasks.Task, work tasks.Work) tasks.PullRequest {
	w.Helper()
	pr, err := w.src.Propose(w.Context(), t, work)
	if err != nil {
		w.Fatal(err)
	}
	return pr
}

func TestPropose(t *testing.T) {
	both(t, func(w *world) {
		w.started()
		task, work := w.work(1)
		pr := w.propose(task, work)
		if diff := cmp.Diff(tasks.PullRequest{Number: 1, URL: w.hub.URL() + "/acme/api/pull/1", Thread: "github/acme/api#1"}, pr); diff != "" {
			w.Error(diff)
		}
		got := w.pull(1)
		if !got.Draft || got.Title != "Mend the total" || got.Head != ownBranch || got.Base != "main" || got.HeadSHA != work.Commit {
			w.Errorf("opened %+v", got)
		}
		golden(w.T, "pull_request", strings.ReplaceAll(got.Body, work.Commit, "COMMIT"))
		// Once more, in another process: nothing happens.
		w.src = w.source(func(c *Config) { *c = w.src.cfg })
		if again := w.propose(task, work); again != pr || len(w.hub.Calls(createPull)) != 1 || len(w.hub.Calls(editPull)) > 0 {
			w.Errorf("again: %+v", again)
		}

		// A follow-up updates it, and leaves alone what people wrote.
		body := "See #3.\n\n" + got.Body + "\nReviewed by ann."
		w.edit(1, body)
		next, work := w.work(2)
		work.Summary, work.Title = "And cents to euros.", "Other words"
		w.propose(next, work)
		after := w.pull(1)
		if !strings.HasPrefix(after.Body, "See #3.\n\n<!-- errand:work task="+next.ID) || !strings.HasSuffix(after.Body, "-->\nReviewed by ann.") ||
			!strings.Contains(after.Body, "And cents to euros.") || strings.Contains(after.Body, "cents to cents") || after.Title != got.Title {
			w.Errorf("updated: %+v", after)
		}
		// An older task that comes late has no say any more.
		task.ID, work.Summary, work.Commit = tasks.NewID(time.Unix(1, 0), "slack", "c1"), "old", strings.Repeat("0", 40)
		w.propose(task, work)
		// And where people have taken our section out, it stays out.
		if w.pull(1).Body != after.Body {
			w.Errorf("an older task wrote %s", w.pull(1).Body)
		}
		w.edit(1, "Mine.")
		newest, work := w.work(3)
		w.propose(newest, work)
		if w.pull(1).Body != "Mine." || len(w.hub.Pulls(repo)) != 1 {
			w.Errorf("written over: %+v", w.hub.Pulls(repo))
		}
		if strings.Contains(w.logs.String(), "ghp_test") {
			w.Error("the token is in the log")
		}
	})
}

// edit is a person's edit of a description.
func (w *world) edit(number int, body string) {
	w.Helper()
	gh, err := w.src.clients.of(w.Context(), origin{Repo: repo})
	if err != nil {
		w.Fatal(err)
	}
	p := proposal{gh: gh, owner: "acme", name: "api"}
	if err := p.write(w.Context(), number, body); err != nil {
		w.Fatal(err)
	}
}

// Only the open pull request of our own branch counts; one that was closed stays closed.
func TestProposeFindsItsOwn(t *testing.T) {
	both(t, func(w *world) {
		w.started()
		w.open() // another branch's
		task, work := w.work(1)
		first := w.propose(task, work)
		if err := w.hub.ChangePR(w.Context(), repo, first.Number, "closed", "ann"); err != nil {
			w.Fatal(err)
		}
		task, work = w.work(2)
		second := w.propose(task, work)
		if first.Number != 2 || second.Number != 3 || w.pull(2).State != "closed" {
			w.Errorf("first %+v, second %+v, %+v", first, second, w.hub.Pulls(repo))
		}
	})
}

// An answer that got lost does not double anything, and nor does somebody who is faster.
func TestProposeIsNotDoubled(t *testing.T) {
	both(t, func(w *world) {
		w.started()
		task, work := w.work(1)
		w.hub.Fail(createPull, githubfake.Failure{After: true, Status: 502})
		if _, err := w.src.Propose(w.Context(), task, work); err == nil {
			w.Fatal("a lost answer is no success")
		}
		if pr := w.propose(task, work); pr.Number != 1 || len(w.hub.Pulls(repo)) != 1 || len(w.hub.Calls(createPull)) != 1 {
			w.Errorf("%+v of %+v", pr, w.hub.Pulls(repo))
		}
		// As if both had looked before either wrote.
		w.hub.Fail(listPulls, githubfake.Failure{Status: 200, Body: "[]"})
		if pr := w.propose(task, work); pr.Number != 1 || len(w.hub.Pulls(repo)) != 1 {
			w.Errorf("%+v of %+v", pr, w.hub.Pulls(repo))
		}
	})
}

// A repository without drafts gets an ordinary pull request.
func TestProposeWithoutDrafts(t *testing.T) {
	t.Parallel()
	w := withToken(t).started()
	task, work := w.work(1)
	w.hub.Fail(createPull, githubfake.Failure{Status: 422, Body: `{"message":"Draft pull requests are not supported in this repository.",` +
		`"errors":[{"resource":"PullRequest","code":"custom","message":"Draft pull requests are not supported in this repository."}]}`})
	w.propose(task, work)
	if got := w.pull(1); got.Draft || got.HeadSHA != work.Commit {
		t.Errorf("opened %+v", got)
	}
}

// What will not change by waiting is told to people, and the rest says when to come back.
func TestProposeRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route   string
		failure githubfake.Failure
		later   bool
		says    string
	}{
		"no access":    {createPull, githubfake.Failure{Status: 403, Body: `{"message":"Resource not accessible by personal access token"}`}, false, "did not let errand open a pull request in acme/api"},
		"bad token":    {listPulls, githubfake.Failure{Status: 401}, false, "does not accept errand's credentials"},
		"no commits":   {createPull, githubfake.Failure{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and x"}]}`}, false, "Validation Failed: No commits between main and x."},
		"rate limit":   {createPull, githubfake.Failure{Status: 403, Body: `{"message":"You have exceeded a secondary rate limit"}`}, true, ""},
		"too quickly":  {createPull, githubfake.Failure{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"was submitted too quickly"}]}`}, true, ""},
		"server error": {createPull, githubfake.Failure{Status: 500}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t).started()
			task, work := w.work(1)
			w.hub.Fail(c.route, c.failure)
			_, err := w.src.Propose(t.Context(), task, work)
			input, told := errors.AsType[*tasks.InputError](err)
			if err == nil || told == c.later || told && !strings.Contains(input.Sentence, c.says) {
				t.Errorf("%v", err)
			}
			if _, wait := errors.AsType[*tasks.ErrLater](err); wait != (c.later && c.failure.Status != 500) {
				t.Errorf("%v, to be tried later: %v", err, wait)
			}
		})
	}
}

// What the agent says can neither end our section nor begin another one.
func TestSectionCannotBeForged(t *testing.T) {
	t.Parallel()
	w := withToken(t).started()
	task, work := w.work(1)
	work.Summary = "x\n" + sectionEnd + "\n<!-- errand:work task=z commit=z thread=z -->\n" + strings.Repeat("long ", 20_000)
	task.Thread = "chat/--> <b>"
	w.propose(task, work)
	body := w.pull(1).Body
	s, ok := readSection(body)
	if !ok || s.start != 0 || s.end != len(body) || s.task != task.ID || s.commit != work.Commit {
		t.Errorf("%+v, %v of\n%.300s", s, ok, body)
	}
	if len(body) > maxSection+1000 || !bytes.Contains([]byte(body), []byte("The answer goes on.")) {
		t.Errorf("%d bytes", len(body))
	}
}
