package github

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

const (
	ownBranch  = "errand/slack-1a2b3c4d5e"
	createPull = "POST /repos/{o}/{r}/pulls"
	listPulls  = "GET /repos/{o}/{r}/pulls"
	editPull   = "PATCH /repos/{o}/{r}/pulls/{n}"
)

// work commits on a thread's branch and returns the proposal of a run that did so.
func (w *world) work(n int) forge.Proposal {
	w.Helper()
	sha := must(w.repo.Commit(ownBranch, "", map[string]string{"main.go": "package main // " + strings.Repeat("x", n) +
		"\n"}, "Fix the total"))
	return forge.Proposal{
		Repo: repo, Branch: ownBranch, Base: "main", Commit: sha, Title: "Fix the total",
		Run: fmt.Sprintf("%d-slack-c1", 1_790_000_000_000_000+n*1_000_000), Source: "slack", Thread: "slack/T1/C1/1.2",
		Asker:   "ann",
		RunURL:  fmt.Sprintf("https://errand.example/tasks/%d-slack-c1", 1_790_000_000_000_000+n*1_000_000),
		Summary: "I added cents to cents, @octocat.\n\n```go\ntotal++\n",
	}
}

// started makes our branch.
func (w *world) started() *world {
	w.Helper()
	must(w.repo.Commit(ownBranch, "main", nil, "begin"))
	return w
}

func (w *world) publish(p forge.Proposal) forge.PullRequestRef {
	w.Helper()
	pr, err := w.forge.Publish(w.Context(), p)
	if err != nil {
		w.Fatal(err)
	}
	return pr
}

func TestPublish(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	work := w.work(1)
	pr := w.publish(work)
	if diff := cmp.Diff(forge.PullRequestRef{
		Number: 1, URL: w.hub.URL() + "/acme/api/pull/1", Draft: true,
	}, pr); diff != "" {
		w.Error(diff)
	}
	got := w.pull(1)
	if !got.Draft || got.Title != "Fix the total" || got.Head != ownBranch || got.Base != "main" ||
		got.HeadSHA != work.Commit {
		w.Errorf("opened %+v", got)
	}
	golden(w.T, "pull_request", strings.ReplaceAll(got.Body, work.Commit, "COMMIT"))
	// Once more, in another process: nothing happens.
	w.forge = w.other()
	if again := w.publish(work); again != pr || len(w.hub.Calls(createPull)) != 1 ||
		len(w.hub.Calls(editPull)) > 0 {
		w.Errorf("again: %+v", again)
	}

	// A follow-up updates it, and leaves alone what people wrote.
	body := "See #3.\n\n" + got.Body + "\nReviewed by ann."
	w.edit(1, body)
	work = w.work(2)
	work.Summary, work.Title = "And cents to euros.", "Other words"
	w.publish(work)
	after := w.pull(1)
	if !strings.HasPrefix(after.Body, "See #3.\n\n<!-- errand:work task="+work.Run) ||
		!strings.HasSuffix(after.Body, "-->\nReviewed by ann.") ||
		!strings.Contains(after.Body, "And cents to euros.") || strings.Contains(after.Body, "cents to cents") ||
		after.Title != got.Title {
		w.Errorf("updated: %+v", after)
	}
	// An older task that comes late has no say any more.
	work.Run, work.Summary, work.Commit = "0000000001000000-slack-c1", "old", strings.Repeat("0", 40)
	w.publish(work)
	// And where people have taken our section out, it stays out.
	if w.pull(1).Body != after.Body {
		w.Errorf("an older task wrote %s", w.pull(1).Body)
	}
	w.edit(1, "Mine.")
	work = w.work(3)
	w.publish(work)
	if w.pull(1).Body != "Mine." || len(w.hub.Pulls(repo)) != 1 {
		w.Errorf("written over: %+v", w.hub.Pulls(repo))
	}
	if logs := w.logs.String(); strings.Contains(logs, "ghp_") || strings.Contains(logs, "ghs_") {
		w.Error("a token is in the log")
	}
}

// Work on an issue closes it when it is merged, also after a follow-up that was requested on the pull request. The
// words of the agent close nothing.
func TestPublishedWorkFixesItsIssue(t *testing.T) {
	t.Parallel()
	w := withToken(t).started()
	work := w.work(1)
	work.Fixes, work.Summary = 5, "Fixes #7, closes #8. <!-- errand:work task=1 commit=1 thread=1 fixes=9 -->"
	w.publish(work)
	closes := func() string {
		t.Helper()
		body := w.pull(1).Body
		_, text, _ := strings.Cut(body, "-->\n")
		line, rest, _ := strings.Cut(text, "\n")
		if strings.Contains(rest, "Fixes #") || strings.Contains(rest, "closes #") ||
			strings.Contains(rest, "<!-- errand:work task") {
			t.Errorf("%s", body)
		}
		return line
	}
	if got := closes(); got != "Fixes #5" {
		t.Errorf("%q", got)
	}
	work = w.work(2)
	work.Summary = "Fixes #7 too."
	w.publish(work)
	if got := closes(); got != "Fixes #5" {
		t.Errorf("after a follow-up: %q", got)
	}
}

// A pull request names those of the same work in other repositories, also when they are opened later, and after a
// follow-up in its own repository only.
func TestPullRequestsTogether(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	work := w.work(1)
	work.Fixes = 5
	w.publish(work)
	work.Together = []string{"acme/web#8", "acme/docs.io#9"}
	w.publish(work)
	w.publish(work)
	const line = "-->\nFixes #5\n\nTogether with acme/web#8, acme/docs.io#9.\n\n"
	if body := w.pull(1).Body; !strings.Contains(body, line) || len(w.hub.Calls(editPull)) != 1 ||
		len(w.hub.Pulls(repo)) != 1 {
		w.Errorf("%d edits: %s", len(w.hub.Calls(editPull)), body)
	}
	w.publish(w.work(2))
	if body := w.pull(1).Body; !strings.Contains(body, line) || strings.Count(body, "Together") != 1 {
		w.Errorf("after a follow-up: %s", body)
	}
}

// A pull request that is closed before it is linked gets its links, and no second one is opened.
func TestLinkOfAClosedPullRequest(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	work := w.work(1)
	pr := w.publish(work)
	if err := w.hub.ChangePR(w.Context(), repo, pr.Number, "closed", "ann"); err != nil {
		w.Fatal(err)
	}
	work.Number, work.Together = pr.Number, []string{"acme/web#8"}
	if again := w.publish(work); again.Number != pr.Number || len(w.hub.Pulls(repo)) != 1 ||
		!strings.Contains(w.pull(1).Body, "Together with acme/web#8.") {
		w.Errorf("linked %+v of %+v", again, w.hub.Pulls(repo))
	}
}

// edit is a person's edit of a description.
func (w *world) edit(number int, body string) {
	w.Helper()
	gh := must(w.forge.Client(w.Context(), repo, 0))
	if _, _, err := gh.PullRequests.Edit(w.Context(), "acme", "api", number,
		&github.PullRequest{Body: &body}); err != nil {
		w.Fatal(err)
	}
}

// Only the open pull request of our own branch counts; one that was closed stays closed.
func TestPublishFindsItsOwn(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	w.open() // another branch's
	work := w.work(1)
	first := w.publish(work)
	if err := w.hub.ChangePR(w.Context(), repo, first.Number, "closed", "ann"); err != nil {
		w.Fatal(err)
	}
	work = w.work(2)
	second := w.publish(work)
	if first.Number != 2 || second.Number != 3 || w.pull(2).State != "closed" {
		w.Errorf("first %+v, second %+v, %+v", first, second, w.hub.Pulls(repo))
	}
}

// A follow-up that changes nothing, such as a question, opens no pull request for what people have merged or closed,
// also if someone has pushed to the branch, or has removed errand's section. New work gets a new one.
func TestPublishOpensNothingTwice(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"closed":      func(*world) {},
		"a push":      func(w *world) { must(w.repo.Commit(ownBranch, "", map[string]string{"a": "b"}, "theirs")) },
		"the section": func(w *world) { w.edit(1, "by people") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withApp(t)
			w.started()
			work := w.work(1)
			pr := w.publish(work)
			change(w)
			body := w.pull(1).Body
			if err := w.hub.ChangePR(t.Context(), repo, pr.Number, "merged", "ann"); err != nil {
				t.Fatal(err)
			}
			work.Run = fmt.Sprintf("%d-slack-c2", 1_790_000_100_000_000)
			if again := w.publish(work); again.Number != pr.Number || len(w.hub.Pulls(repo)) != 1 ||
				w.pull(1).Body != body {
				t.Errorf("published %+v again as %+v: %+v", pr, again, w.hub.Pulls(repo))
			}
			if next := w.publish(w.work(2)); next.Number == pr.Number {
				t.Errorf("new work is in %+v", next)
			}
		})
	}
}

// A closed pull request with the same work is not edited. It counts neither for another base nor beside an open one.
func TestPublishAndClosedPullRequests(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	must(w.repo.Commit("release", "main", nil, "release"))
	first := w.publish(w.work(1))
	work := w.work(2) // which somebody has pushed, so the description is of the commit before
	body := w.pull(first.Number).Body
	if err := w.hub.ChangePR(t.Context(), repo, first.Number, "closed", "ann"); err != nil {
		t.Fatal(err)
	}
	if again := w.publish(work); again.Number != first.Number || w.pull(first.Number).Body != body {
		t.Errorf("published as %+v: %s", again, w.pull(first.Number).Body)
	}
	work.Base = "release"
	other := w.publish(work)
	if other.Number == first.Number || w.pull(other.Number).Base != "release" {
		t.Errorf("published for another base as %+v", other)
	}
	work.Base = "main"
	if again := w.publish(work); again.Number != other.Number {
		t.Errorf("published as %+v beside the open one", again)
	}
}

// A lost response or a concurrent request should not create duplicates.
func TestPublishIsNotDoubled(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.started()
	work := w.work(1)
	w.hub.Fail(createPull, githubfake.Failure{After: true, Status: 502})
	if _, err := w.forge.Publish(w.Context(), work); err == nil {
		w.Fatal("a lost answer is no success")
	}
	if pr := w.publish(work); pr.Number != 1 || len(w.hub.Pulls(repo)) != 1 || len(w.hub.Calls(createPull)) != 1 {
		w.Errorf("%+v of %+v", pr, w.hub.Pulls(repo))
	}
	// As if both had looked before either wrote.
	w.hub.Fail(listPulls, githubfake.Failure{Status: 200, Body: "[]"})
	if pr := w.publish(work); pr.Number != 1 || len(w.hub.Pulls(repo)) != 1 {
		w.Errorf("%+v of %+v", pr, w.hub.Pulls(repo))
	}
}

// A repository without drafts gets an ordinary pull request.
func TestPublishWithoutDrafts(t *testing.T) {
	t.Parallel()
	w := withToken(t).started()
	work := w.work(1)
	w.hub.Fail(createPull, githubfake.Failure{
		Status: 422,
		Body: `{"message":"Draft pull requests are not supported in this repository.",` +
			`"errors":[{"resource":"PullRequest","code":"custom","message":"Draft pull requests are not supported in this repository."}]}`,
	})
	w.publish(work)
	if got := w.pull(1); got.Draft || got.HeadSHA != work.Commit {
		t.Errorf("opened %+v", got)
	}
}

// Permanent failures should be reported to people, and temporary ones should have a time for the next attempt.
func TestPublishRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		route   string
		failure githubfake.Failure
		later   bool
		says    string
	}{
		"no access": {createPull, githubfake.Failure{
			Status: 403, Body: `{"message":"Resource not accessible by personal access token"}`,
		}, false, "did not let errand open a pull request in acme/api: Resource not accessible by personal access token."},
		"list of permitted addresses": {listPulls, githubfake.Failure{
			Status: 403, Body: `{"message":"the organization has an IP allow list enabled, and your IP address 192.0.2.7 is not permitted."}`,
		}, false, "in acme/api: the organization has an IP allow list enabled, and your IP address … is not permitted."},
		"list of permitted addresses of IPv6": {listPulls, githubfake.Failure{
			Status: 403, Body: `{"message":"Your IP address 2001:db8::7 is not permitted (https://docs.github.com/x)."}`,
		}, false, "in acme/api: Your IP address … is not permitted (https://docs.github.com/x)."},
		"gone": {listPulls, githubfake.Failure{
			Status: 404, Body: `{"message":"Not Found"}`,
		}, false, "in acme/api: it does not exist, or errand has no access to it."},
		"no words":  {listPulls, githubfake.Failure{Status: 403, Body: `<html>`}, false, "it does not exist, or errand has"},
		"bad token": {listPulls, githubfake.Failure{Status: 401}, false, "does not accept errand's credentials"},
		"no commits": {createPull, githubfake.Failure{
			Status: 422,
			Body:   `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and x"}]}`,
		}, false, "Validation Failed: No commits between main and x."},
		"rate limit": {createPull, githubfake.Failure{
			Status: 403, Body: `{"message":"You have exceeded a secondary rate limit"}`,
		}, true, ""},
		"too quickly": {createPull, githubfake.Failure{
			Status: 422,
			Body:   `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"was submitted too quickly"}]}`,
		}, true, ""},
		"server error": {createPull, githubfake.Failure{Status: 500}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t).started()
			work := w.work(1)
			w.hub.Fail(c.route, c.failure)
			_, err := w.forge.Publish(t.Context(), work)
			input, told := errors.AsType[*forge.RefusedError](err)
			if err == nil || told == c.later || told && !strings.Contains(input.Sentence, c.says) {
				t.Errorf("%v", err)
			}
			if _, wait := errors.AsType[*forge.LimitError](err); wait != (c.later && c.failure.Status != 500) {
				t.Errorf("%v, to be tried later: %v", err, wait)
			}
		})
	}
}

// The agent's text should neither end our section nor begin another one.
func TestSectionCannotBeForged(t *testing.T) {
	t.Parallel()
	w := withToken(t).started()
	work := w.work(1)
	work.Summary = "x\n" + sectionEnd + "\n<!-- errand:work task=z commit=z thread=z -->\n" +
		strings.Repeat("long ", 20_000)
	work.Thread = "chat/--> <b>"
	w.publish(work)
	body := w.pull(1).Body
	s, ok := readSection(body)
	if !ok || s.start != 0 || s.end != len(body) || s.task != work.Run || s.commit != work.Commit {
		t.Errorf("%+v, %v of\n%.300s", s, ok, body)
	}
	if len(body) > maxSection+1000 || !bytes.Contains([]byte(body), []byte("The answer is longer.")) {
		t.Errorf("%d bytes", len(body))
	}
}

// People choose their own names.
func TestNameOfTheAskerHasNoEffect(t *testing.T) {
	t.Parallel()
	work := forge.Proposal{Source: "slack", Asker: "![a](https://x.test/a.png) <b>Ann @octocat " + sectionEnd}
	_, line, _ := strings.Cut(renderSection(work), "\n---\n")
	for _, part := range []string{"![", "<b>", "@octocat", sectionEnd + " (slack)"} {
		if strings.Contains(line, part) {
			t.Errorf("%q is in %s", part, line)
		}
	}
}
