package github

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const (
	createComment = "POST /repos/{o}/{r}/issues/{n}/comments"
	listComments  = "GET /repos/{o}/{r}/issues/{n}/comments"
	editComment   = "PATCH /repos/{o}/{r}/issues/comments/{id}"
)

func TestCommentBodies(t *testing.T) {
	t.Parallel()
	broken := tasks.Ending{Kind: tasks.TimedOut, Limit: "2h", At: ended, Result: agent.Result{
		Duration: 2 * time.Hour, Turns: 3, Partial: "I have found one thing so far, @octocat:\n```go\nfunc main() {",
	}}
	published := answered("Mended.\n\n```go\nfunc main() {")
	published.Published = &tasks.Published{PullRequest: forge.PullRequestRef{
		Number: 7, URL: "https://github.com/acme/api/pull/7",
	}, Work: tasks.Work{Repo: "acme/api"}}
	w := withToken(t)
	for name, e := range map[string]tasks.Ending{
		"answered":  answered("**major** main.go:1: this says hello to @octocat <!-- errand:review -->\n\n```go\n@generated\nfunc main() {}"),
		"empty":     answered(" \n"),
		"failed":    {Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended},
		"timeout":   broken,
		"published": published,
	} {
		n := w.open(func(pr *githubfake.PR) { pr.Head = name })
		w.close(w.task(n, 0), e)
		got := w.hub.Comments(repo, n)
		if len(got) != 1 {
			t.Fatalf("%s: %d comments", name, len(got))
		}
		sha := w.pull(n).HeadSHA
		golden(t, "comment."+name,
			strings.NewReplacer(sha, "<head>", hub.ShortSHA(sha), "<short>").Replace(got[0].Body))
	}
}

func TestFooterWithoutConsole(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.ConsoleURL = "" })
	n := w.open()
	task := w.task(n, 0)
	w.close(task, answered("Fine."))
	if got := w.hub.Comments(repo, n)[0].Body; !strings.Contains(got, " · run "+display.TaskID(task.ID)+"</sub>") {
		t.Error(got)
	}
}

// reviewPart begins each comment of a review, with the number of all but the first.
var reviewPart = regexp.MustCompile(`^<!-- errand:review(?: part=([0-9]+))? -->`)

// said is the comment of a task in a few words: its position, its author, who wrote it last, and how often it was
// edited.
func (w *world) said(n int) (all []string) {
	for i, c := range w.hub.Comments(repo, n) {
		_, text, _ := strings.Cut(c.Body, "**\n\n")
		text, _, _ = strings.Cut(text, "\n")
		if m := reviewPart.FindStringSubmatch(c.Body); m == nil {
			text = c.Body
		} else if m[1] != "" {
			text = fmt.Sprintf("(%s) %s", m[1], text)
		}
		all = append(all, fmt.Sprintf("%d %s %d: %.40s", i, c.User, c.Edits, text))
	}
	return all
}

func (w *world) wantSaid(n int, want ...string) {
	w.Helper()
	me := must(w.src.forge.Login(w.Context()))
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "ME", me)
	}
	if diff := cmp.Diff(want, w.said(n)); diff != "" {
		w.Error(diff)
	}
}

func TestOneCommentPerPullRequest(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	// Others talk for more than a page, and one of them has copied our mark.
	for i := range 105 {
		must(w.hub.Comment(w.Context(), repo, n, "octocat", fmt.Sprint(i)))
	}
	first, second, third := w.task(n, 0), w.task(n, 1), w.task(n, 2)
	copied := marked("review", second, answered("")) + "mine"
	must(w.hub.Comment(w.Context(), repo, n, "mallory", copied))
	must(w.hub.Comment(w.Context(), repo, n, must(w.src.forge.Login(w.Context())), "see <!-- errand:review -->"))
	w.close(first, answered("One."))
	if got := w.said(n); len(got) != 108 {
		w.Fatalf("%d comments", len(got))
	}
	last := func() string { all := w.said(n); return all[len(all)-1] }
	me := must(w.src.forge.Login(w.Context()))
	for _, c := range []struct {
		name string
		t    tasks.Task
		e    tasks.Ending
		want string
	}{
		{"a new task", second, answered("Two."), "1: Two."},
		{"the same again", second, answered("Two."), "1: Two."},
		{"an older task", first, answered("One, late."), "1: Two."},
		{"a newer one", third, answered("Three."), "2: Three."},
	} {
		w.close(c.t, c.e)
		if got := last(); got != "107 "+me+" "+c.want {
			w.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// Tried again, the same task has a new ending.
	again := answered("Three, again.")
	again.At, again.Retried = ended.Add(time.Minute), ended.Add(time.Second)
	w.close(third, again)
	w.close(third, answered("Three.")) // an outbox item from before
	if got := last(); got != "107 "+me+" 3: Three, again." {
		w.Error(got)
	}
}

func TestFailuresAndTheComment(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	e := func(k tasks.EndingKind) tasks.Ending {
		return tasks.Ending{Kind: k, Reason: "Because " + string(k) + ".", At: ended}
	}
	i := 0
	end := func(e tasks.Ending) { i++; w.close(w.task(n, i), e) }
	end(e(tasks.Refused))
	end(e(tasks.Cancelled))
	w.wantSaid(n)
	end(e(tasks.Failed))
	w.wantSaid(n, "0 ME 0: Because failed.")
	end(e(tasks.Lost))
	w.wantSaid(n, "0 ME 1: The workers running this died several ti")
	end(e(tasks.Refused))
	w.wantSaid(n, "0 ME 1: The workers running this died several ti")
	end(answered("Fine."))
	w.wantSaid(n, "0 ME 2: Fine.")
	for _, k := range []tasks.EndingKind{
		tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Lost, tasks.Cancelled, tasks.Refused,
	} {
		end(e(k))
	}
	w.wantSaid(n, "0 ME 2: Fine.")
}

func TestLongAnswer(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.open()
	lines := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %d ä\n\n", word, i)
		}
		return b.String()
	}
	must(w.hub.Comment(t.Context(), repo, n, "octocat", "Hm."))
	long := lines(12_000, "finding") // about 200 KB
	w.close(w.task(n, 0), answered(long))
	must(w.hub.Comment(t.Context(), repo, n, "octocat", "Hm?"))
	all := w.hub.Comments(repo, n)
	if len(all) != 6 {
		t.Fatalf("%d comments", len(all))
	}
	at := 0
	for i, c := range all[1:5] {
		if len(c.Body) > hub.MaxComment {
			t.Errorf("part %d has %d bytes", i+1, len(c.Body))
		}
		if title := fmt.Sprintf("(%d of 4)**", i+1); !strings.Contains(c.Body, title) ||
			strings.Contains(c.Body, "<sub>") != (i == 3) {
			t.Errorf("part %d: %.200s", i+1, c.Body)
		}
		for strings.Contains(c.Body+"\n", fmt.Sprintf("finding %d ä\n", at)) {
			at++
		}
	}
	if at != 12_000 {
		t.Errorf("finding %d is missing", at)
	}
	// The next answer takes the same places, and only as many as it needs.
	w.close(w.task(n, 1), answered(lines(6_000, "problem")))
	w.wantSaid(n, "0 octocat 0: Hm.", "1 ME 1: problem 0 ä", "2 ME 1: (2) problem 3882 ä", "3 octocat 0: Hm?")
	const remove = "DELETE /repos/{o}/{r}/issues/comments/{id}"
	w.hub.Fail(remove, githubfake.Failure{Status: 502})
	if err := w.report(w.task(n, 2)).Close(t.Context(), answered("Fine.")); err == nil {
		t.Error("closed with half of an older answer below")
	}
	w.hub.Fail(remove, githubfake.Failure{Status: 404, After: true}) // another process was faster
	w.close(w.task(n, 2), answered("Fine."))
	w.wantSaid(n, "0 octocat 0: Hm.", "1 ME 2: Fine.", "2 octocat 0: Hm?")
	if all := w.hub.Statuses(repo, w.pull(n).HeadSHA); all[len(all)-1].Description != "Reviewed, see the conversation" {
		t.Errorf("statuses %+v", all)
	}
}

// A close that broke off in the middle is finished by the next one, in any process.
func TestCloseGoesOn(t *testing.T) {
	both(t, func(w *world) {
		n := w.open()
		e := answered(strings.Repeat(strings.Repeat("word ", 200)+"\n\n", 180)) // three parts
		task := w.task(n, 0)
		for i, f := range []struct {
			route   string
			failure githubfake.Failure
			parts   int // there afterwards
		}{
			{listComments, githubfake.Failure{Status: 502}, 0},
			{createComment, githubfake.Failure{Status: 502}, 0},
			{createComment, githubfake.Failure{Status: 502, After: true}, 1},
			{createComment, githubfake.Failure{Status: 502, After: true}, 2},
			{createComment, githubfake.Failure{After: true}, 3},
		} {
			w.hub.Fail(f.route, f.failure)
			if err := w.report(task).Close(w.Context(), e); err == nil || len(w.hub.Comments(repo, n)) != f.parts {
				w.Errorf("attempt %d: %v, %d comments, want %d", i+1, err, len(w.hub.Comments(repo, n)), f.parts)
			}
		}
		if got := len(w.hub.Calls(createComment)); got != 4 { // what may have arrived is looked for first
			w.Errorf("created %d times", got)
		}
		w.close(task, e)
		w.wantSaid(n, "0 ME 0: word word word word word word word word ",
			"1 ME 0: (2) word word word word word word word w",
			"2 ME 0: (3) word word word word word word word w")
	})
}

// An edit whose response is lost, or whose comment is gone, is tried again: there is one comment in the end.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	task := w.task(n, 0)
	w.close(task, answered("One."))
	next := w.task(n, 1)
	w.hub.Fail(editComment, githubfake.Failure{Status: 502, After: true})
	if err := w.report(next).Close(w.Context(), answered("Two.")); err == nil {
		w.Error("closed on a 502")
	}
	w.close(next, answered("Two."))
	w.wantSaid(n, "0 ME 1: Two.")
	// Deleted between our reading and our writing.
	last := w.task(n, 2)
	w.hub.Fail(editComment, githubfake.Failure{Status: 404})
	if err := w.report(last).Close(w.Context(), answered("Three.")); err == nil {
		w.Error("gave up an answer")
	}
	w.close(last, answered("Three."))
	w.wantSaid(n, "0 ME 2: Three.")
}

func TestCloseErrors(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	task := w.task(n, 0)
	w.hub.Fail(listComments, githubfake.Failure{Status: 429, Header: http.Header{"Retry-After": {"120"}}})
	err := w.report(task).Close(w.Context(), answered("Fine."))
	if later, ok := errors.AsType[*tasks.ErrLater](err); !ok || time.Until(later.At) < time.Minute {
		w.Errorf("got %v", err)
	}
	w.hub.Fail(listComments, githubfake.Failure{Status: 401})
	if err := w.report(task).Close(w.Context(), answered("Fine.")); err == nil {
		w.Error("gave up on credentials that can be renewed")
	}
	if len(w.hub.Comments(repo, n)) != 0 {
		w.wantSaid(n)
	}
	// While a conversation is locked, the indicator says so, and the answer is posted later.
	locked := githubfake.Failure{
		Status: 403, Body: `{"message":"Unable to create comment because issue is locked."}`,
	}
	w.hub.Fail(createComment, locked)
	w.wantUnposted(task, answered("Fine."), "GitHub says 403: Unable to create comment because issue is locked.", false)
	// People see why. The fleet's address is nothing for them.
	w.hub.Fail(createComment, githubfake.Failure{
		Status: 403, Body: `{"message":"Your IP address 192.0.2.7 is not permitted."}`,
	})
	w.wantUnposted(task, answered("Fine."), "GitHub says 403: Your IP address … is not permitted.", false)
	w.hub.Fail(createComment, locked)
	wantLight := func(want string) {
		w.Helper()
		sha := w.pull(n).HeadSHA
		got := "nothing"
		for _, c := range w.hub.CheckRuns(repo, sha) {
			got = c.Conclusion + " " + c.Summary
		}
		for _, s := range w.hub.Statuses(repo, sha) {
			got = strings.Replace(s.State+" "+s.Description, "error", "neutral", 1)
		}
		if got != want {
			w.Errorf("got %s, want %s\n%s", got, want, w.logs)
		}
	}
	wantLight("neutral Not reviewed: GitHub does not let errand comment. The answer is in the run's log.")
	w.hub.Fail(createComment, locked)
	overloaded := tasks.Ending{
		Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended.Add(time.Minute),
		Retried: ended.Add(time.Second),
	}
	w.wantUnposted(task, overloaded, "GitHub says 403: Unable to create comment because issue is locked.", false)
	wantLight("neutral Not reviewed: The model is overloaded.")
}

// wantUnposted closes the report of a task whose final message GitHub refuses.
func (w *world) wantUnposted(task tasks.Task, e tasks.Ending, why string, final bool) {
	w.Helper()
	err := w.report(task).Close(w.Context(), e)
	failed, ok := errors.AsType[*tasks.UnpostedError](err)
	if !ok || failed.Why != why || failed.Final != final || failed.Shown {
		w.Errorf("%+v, %v; want %q, final %t", failed, err, why, final)
	}
}

// What GitHub refuses is kept and posted later, unless its conversation does not exist any more.
func TestRefusedAnswers(t *testing.T) {
	t.Parallel()
	const forbidden = `{"message":"Resource not accessible by integration"}`
	for name, c := range map[string]struct {
		change func(w *world, n int) (undo func())
		why    string
		final  bool
	}{
		"a missing right": {func(w *world, _ int) func() {
			return w.hub.Fail(createComment, githubfake.Failure{Status: 403, Body: forbidden})
		}, "GitHub says 403: Resource not accessible by integration", false},
		"a repository out of reach": {func(w *world, _ int) func() {
			if _, err := w.src.forge.Private(w.Context(), repo); err != nil { // which is known for a while
				w.Fatal(err)
			}
			lift := w.hub.Fail(listComments, githubfake.Failure{Status: 404, Body: `{"message":"Not Found"}`})
			again := w.hub.Fail("GET /repos/{o}/{r}", githubfake.Failure{Status: 404, Body: `{"message":"Not Found"}`})
			return func() { lift(); again() }
		}, "GitHub says 404: Not Found", false},
		"a conversation that is gone": {func(w *world, _ int) func() {
			return w.hub.Fail(listComments, githubfake.Failure{Status: 404, Body: `{"message":"Not Found"}`})
		}, "its conversation does not exist any more", true},
		"a deleted issue": {func(w *world, n int) func() {
			if err := w.hub.ChangeIssue(w.Context(), repo, n, "deleted", "ann"); err != nil {
				w.Fatal(err)
			}
			return nil
		}, "its conversation does not exist any more", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withToken(t)
			_, n, task, who := w.working()
			w.report(task).Update(agent.Event{Kind: agent.Started})
			w.shows(n, "Working on")
			undo := c.change(w, n)
			w.wantUnposted(task, answered("Because."), c.why, c.final)
			if undo == nil {
				return
			}
			undo()
			w.close(task, answered("Because."))
			w.shows(n, "Done: the answer to "+who+"'s request is below.")
			if got := w.hub.Comments(repo, n); len(got) != 2 || !strings.Contains(got[1].Body, "Because.") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestOpenWithoutOrigin(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	task := tasks.Task{ID: "1700000000000000-github-a"}
	if _, err := w.src.Open(t.Context(), task); err == nil {
		t.Error("opened")
	}
	if _, err := w.src.Brief(t.Context(), task, ""); err == nil {
		t.Error("briefed")
	}
}

// Nothing is written before there is something to read.
func TestNoCommentAtTheBeginning(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	task := w.task(n, 0)
	w.report(task).Update(use("Reading"))
	w.wait(func() bool {
		all := w.lights(task.Ref)
		return strings.HasPrefix(all[len(all)-1], "in_progress") || strings.HasPrefix(all[len(all)-1], "pending")
	})
	for _, route := range []string{
		createComment, "POST /repos/{o}/{r}/pulls/{n}/reviews", "POST /repos/{o}/{r}/issues/{n}/reactions",
	} {
		if got := w.hub.Calls(route); len(got) != 0 {
			w.Errorf("%s: %d calls", route, len(got))
		}
	}
}
