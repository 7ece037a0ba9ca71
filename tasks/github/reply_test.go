package github

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// asks makes tasks of comments without a front door.
func (w *world) asks(n int, spots ...thread.Spot) (all []tasks.Task) {
	w.Helper()
	for i, p := range spots {
		h := remarkEvent{Remark: thread.Remark{
			Spot: p, Author: "ann", At: time.Unix(1_790_000_000+int64(i), 0),
			URL: fmt.Sprintf("https://github.example/%s#%d", repo, i),
		}, Ref: thread.Ref{Repo: repo, Number: n}, said: said{rest: "why?"}}
		t, err := w.src.interpreter(nil).requestedTask(w.Context(), h, mentionWork)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, must(t.WithOrigin()))
	}
	return all
}

// talk opens a pull request with a comment, and gives its task.
func (w *world) talk() (n int, t tasks.Task, comment int64) {
	w.Helper()
	w.talkers()
	n = w.quietOpen()
	comment = must(w.hub.Comment(w.Context(), repo, n, "ann", "@errand why?"))
	return n, w.asks(n, thread.Spot{Place: thread.InConversation, ID: comment})[0], comment
}

func TestReplyBodies(t *testing.T) {
	t.Parallel()
	broken := tasks.Ending{Kind: tasks.TimedOut, Limit: "2h", At: ended, Result: agent.Result{
		Duration: 2 * time.Hour, Turns: 3, Partial: "I have found one thing so far, @octocat:\n```go\nfunc main() {",
	}}
	published := answered("Mended.\n\n```go\nfunc main() {")
	published.Published = &tasks.Published{PullRequest: forge.PullRequestRef{
		Number: 7, URL: "https://github.com/acme/api/pull/7",
	}, Work: tasks.Work{Repo: "acme/api"}}
	together := published
	together.Also = []*tasks.Published{{PullRequest: forge.PullRequestRef{
		Number: 8, URL: "https://github.com/acme/web/pull/8",
	}, Work: tasks.Work{Repo: "acme/web"}}}
	w := withToken(t)
	w.talkers()
	for name, e := range map[string]tasks.Ending{
		"answered":  answered("It is polite, @octocat. <!-- errand:reply task=x -->\n\n```go\n@generated\nfunc main() {}"),
		"empty":     answered(" \n"),
		"failed":    {Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended},
		"cancelled": {Kind: tasks.Cancelled, By: "ann", At: ended},
		"timeout":   broken,
		"published": published,
		"together":  together,
	} {
		n := w.quietOpen(func(pr *githubfake.PR) { pr.Head = name })
		comment := must(w.hub.Comment(t.Context(), repo, n, "ann", "@errand why?"))
		task := w.asks(n, thread.Spot{Place: thread.InConversation, ID: comment})[0]
		w.close(task, e)
		got := w.hub.Comments(repo, n)
		if len(got) != 2 {
			t.Fatalf("%s: %d comments", name, len(got))
		}
		golden(t, "reply."+name,
			strings.NewReplacer(fmt.Sprintf("c%d", got[0].ID), "<comment>", display.TaskID(task.ID), "<run>").
				Replace(got[1].Body))
	}
}

// The answer is in the thread on the line where it was asked, and in the conversation where it is for several places.
func TestReplyGoesWhereItWasAsked(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.talkers()
	n := w.quietOpen()
	at := githubfake.Line{Path: "change.go", Line: 1, Body: "@errand why?"}
	must(w.hub.Review(w.Context(), repo, n, "ann", "COMMENT", "@errand?", at, at))
	lines := w.hub.ReviewComments(repo, n)
	a, b := lines[0].ID, lines[1].ID
	onA := thread.Spot{Place: thread.OnLine, ID: a, Thread: a}
	all := w.asks(n, onA, onA,
		thread.Spot{Place: thread.OnLine, ID: b, Thread: b}, thread.Spot{Place: thread.InReview, ID: lines[0].ReviewID})
	for i, c := range []struct {
		task   tasks.Task
		covers []string
		line   int64 // 0: the conversation
	}{
		{all[0], nil, a},
		{all[1], []string{all[0].ID}, a},
		{all[0], []string{all[2].ID}, 0},
		{all[2], []string{all[3].ID}, 0},
		{all[3], nil, 0},
	} {
		lines, said := len(w.hub.ReviewComments(repo, n)), len(w.hub.Comments(repo, n))
		e := answered("Because.")
		e.Covers, e.At = c.covers, ended.Add(time.Duration(i)*time.Minute)
		w.close(c.task, e)
		newLines, newSaid := w.hub.ReviewComments(repo, n)[lines:], w.hub.Comments(repo, n)[said:]
		switch {
		case len(newLines)+len(newSaid) != 1:
			w.Errorf("%d: %d replies", i, len(newLines)+len(newSaid))
		case c.line != 0 && (len(newLines) != 1 || newLines[0].InReplyTo != c.line):
			w.Errorf("%d: %+v", i, newSaid)
		case c.line == 0 && len(newSaid) != 1:
			w.Errorf("%d: %+v", i, newLines)
		}
	}
	signs := func(i int) (all []string) {
		for _, r := range w.hub.ReviewComments(repo, n)[i].Reactions {
			all = append(all, r.Content)
		}
		return all
	}
	if !slices.Equal(signs(0), []string{"hooray"}) || !slices.Equal(signs(1), []string{"hooray"}) {
		w.Errorf("reactions: %v %v", signs(0), signs(1))
	}
}

// A line's thread that is gone is no reason to lose an answer.
func TestReplyWithoutItsThread(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	w.close(w.asks(n, thread.Spot{Place: thread.OnLine, ID: 999, Thread: 999})[0], answered("Because."))
	if got := w.hub.Comments(repo, n); len(got) != 1 || !strings.Contains(got[0].Body, "Because.") {
		t.Errorf("%+v", got)
	}
}

// An answer is said once, whatever happens while it is posted; one that was tried again is another.
func TestReplyOnce(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n, task, comment := w.talk()
	// Another user has copied our mark.
	e := answered("Because.")
	must(w.hub.Comment(w.Context(), repo, n, "mallory", thread.Message{
		Task: task.ID, What: string(e.Kind), At: e.At.UnixMicro(),
	}.Mark(1)+"\nNo."))
	close := func() error { return w.report(task).Close(w.Context(), e) }
	w.hub.Fail(createComment, githubfake.Failure{Status: 502, After: true}) // it arrived anyway
	if close() == nil {
		w.Error("closed, though nobody knows whether it arrived")
	}
	w.hub.Fail("POST /repos/{o}/{r}/issues/comments/{id}/reactions", githubfake.Failure{Status: 502})
	if close() == nil {
		w.Error("closed without the sign")
	}
	for range 2 {
		if err := close(); err != nil {
			w.Error(err)
		}
	}
	if got := w.ours(n); len(got) != 1 {
		w.Errorf("%q", got)
	}
	w.signs(n, comment, "hooray")
	e.At = e.At.Add(time.Minute) // Redis has lost the ending before
	if err := close(); err != nil || len(w.ours(n)) != 1 {
		w.Errorf("%v %q", err, w.ours(n))
	}
	found, err := w.src.Final(w.Context(), task, time.Time{})
	if err != nil || found == nil || found.Kind != tasks.Answered || !found.At.Equal(ended) {
		w.Errorf("found %+v, %v", found, err)
	}
	e.Retried = e.At.Add(-time.Second)
	if found, err := w.src.Final(w.Context(), task, e.Retried); err != nil || found != nil {
		w.Errorf("found %+v, %v", found, err)
	}
	if err := close(); err != nil || len(w.ours(n)) != 2 {
		w.Errorf("%v %q", err, w.ours(n))
	}
}

// An update is not an ending: the answer should still be posted, and a retried task can ask again.
func TestReplyAfterQuestion(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n, task, _ := w.talk()
	ask := func(key string) {
		w.Helper()
		if err := w.src.Ask(w.Context(), task, tasks.Question{Key: key, Text: "Which?", Until: ended}); err != nil {
			w.Error(err)
		}
	}
	ask("one")
	if err := w.src.Say(w.Context(), task, "Half of it."); err != nil {
		w.Error(err)
	}
	if found, err := w.src.Final(w.Context(), task, time.Time{}); err != nil || found != nil {
		w.Errorf("found %+v, %v", found, err)
	}
	if err := w.report(task).Close(w.Context(), answered("Because.")); err != nil {
		w.Error(err)
	}
	ask("two")
	if got := w.ours(n); len(got) != 4 {
		w.Errorf("%q", got)
	}
}

func TestReplyErrors(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n, task, comment := w.talk()
	close := func() error { return w.report(task).Close(t.Context(), answered("Because.")) }
	lift := w.hub.Fail(createComment, githubfake.Failure{Status: 403, Header: http.Header{"Retry-After": {"60"}}})
	if err := close(); !later(err) {
		t.Errorf("limited: %v", err)
	}
	lift()
	w.hub.Fail(createComment, githubfake.Failure{Status: 403}) // the conversation is locked
	w.wantUnposted(task, answered("Because."), "GitHub says 403: Forbidden", false)
	if err := close(); err != nil {
		t.Error(err)
	}
	w.signs(n, comment, "hooray")
}

func later(err error) bool {
	_, ok := errors.AsType[*tasks.ErrLater](err)
	return ok
}

func TestLongReply(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n, task, _ := w.talk()
	var b strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&b, "finding %d ä\n\n", i)
	}
	w.hub.Fail(createComment, githubfake.Failure{Status: 502, After: true}) // the first part arrived
	if w.report(task).Close(t.Context(), answered(b.String())) == nil {
		t.Error("closed with one part of two")
	}
	w.close(task, answered(b.String()))
	got := w.hub.Comments(repo, n)[1:]
	if len(got) != 2 || !strings.Contains(got[0].Body, "**(1 of 2)**\n\nfinding 0 ä") ||
		!strings.Contains(got[1].Body, "**(2 of 2)**") ||
		!strings.Contains(got[1].Body, "finding 5999 ä") || strings.Contains(got[0].Body, "<sub>") ||
		!strings.Contains(got[1].Body, "<sub>") {
		t.Errorf("%d comments", len(got))
	}
}

// People without access should get one message per pull request, and a reaction every time; withdrawn tasks should
// post nothing.
func TestStrangersAreToldOnce(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n, task, comment := w.talk()
	task.Actor = "cleo"
	refused := tasks.Ending{Kind: tasks.Refused, Reason: "cleo has no write access to acme/api.", At: ended}
	for range 2 {
		w.close(task, refused)
		task.ID = strings.Replace(task.ID, "1790000000", "1790000001", 1)
	}
	if got := w.ours(n); len(got) != 1 || !strings.HasPrefix(got[0], noWork) {
		t.Errorf("%q", got)
	}
	w.signs(n, comment, "confused")
	task.Actor = "ann"
	w.close(task, tasks.Ending{Kind: tasks.Withdrawn, At: ended})
	w.close(task, tasks.Ending{Kind: tasks.Refused, Reason: "The budget is used up.", At: ended})
	if got := w.ours(n); len(got) != 2 || !strings.HasPrefix(got[1], "The budget is used up.") {
		t.Errorf("%q", got)
	}
}

// A review that was asked for gets its sign as well.
func TestSignOfAnAskedReview(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	w.talkers()
	n := w.quietOpen()
	comment := must(w.hub.Comment(t.Context(), repo, n, "ann", "/review"))
	h := remarkEvent{Remark: thread.Remark{
		Spot: thread.Spot{Place: thread.InConversation, ID: comment}, Author: "ann", At: time.Unix(1_790_000_000, 0),
	}, Ref: thread.Ref{Repo: repo, Number: n}, said: readRemark("/review", "errand")}
	made, err := w.src.interpreter(nil).requestedTask(t.Context(), h, *h.said.work)
	if err != nil {
		t.Fatal(err)
	}
	w.close(must(made.WithOrigin()), answered("Fine."))
	w.signs(n, comment, "hooray")
}
