package github

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

const (
	askThreads  = "POST /graphql"
	createReply = "POST /repos/{o}/{r}/pulls/{n}/comments/{id}/replies"
)

// told lists the findings that are posted on lines, by the text of flaw, with the state of their threads.
func (w *world) told(n int) map[string]githubfake.Thread {
	w.Helper()
	all := map[string]githubfake.Thread{}
	for _, t := range w.hub.Threads(repo, n) {
		_, said, _ := strings.Cut(t.Comments[0].Body, "It is ")
		name, _, _ := strings.Cut(said, ",")
		all[name] = t
	}
	return all
}

// rechecked is the ending of a further run: new findings, and verdicts on posted ones, by the text of flaw.
func (w *world) rechecked(n int, earlier map[string]findings.Status, found ...findings.Finding) tasks.Ending {
	w.Helper()
	a := findings.Answer{Findings: slices.Concat([]findings.Finding{}, found), Summary: "Again."}
	for name, s := range earlier {
		id, ok := findings.FindingOf(w.told(n)[name].Comments[0].Body)
		if !ok {
			w.Fatalf("%s was not told", name)
		}
		a.Earlier = append(a.Earlier, findings.Checked{ID: id, Status: s})
	}
	e := answered("")
	e.Result.Structured = must(json.Marshal(a))
	return e
}

// lines are lines of a file, but for one.
func lines(n, but int, text string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if i == but {
			b.WriteString(text + "\n")
		} else {
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	return b.String()
}

// A posted finding should not be posted again; a fixed one should be reported as fixed in its thread; and one that
// people have settled should be left to them.
func TestReReview(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		w.hub.SetPermission(repo, "bob", "write")
		first := w.pull(n).HeadSHA
		w.close(w.task(n, 0), reviewed("Four.", flaw("mended", 1), flaw("dismissed", 3), flaw("answered", 5),
			flaw("open", 7), flaw("gone", 9)))
		ts := w.told(n)
		if err := w.hub.ResolveThread(w.Context(), repo, n, ts["dismissed"].Comment, "octocat", true); err != nil {
			w.Fatal(err)
		}
		must(w.hub.ReplyThread(w.Context(), repo, n, ts["answered"].Comment, "bob", "On purpose."))
		must(w.hub.ReplyThread(w.Context(), repo, n, ts["open"].Comment, "stranger", "No!"))
		must(w.hub.ReplyThread(w.Context(), repo, n, ts["open"].Comment, "linter[bot]", "Me too."))
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 1, "better")}))

		task := w.task(n, 1)
		b := must(w.src.Brief(w.Context(), task, ""))
		open, final, _ := strings.Cut(b.System, `<outside what="settled findings">`)
		for name, places := range map[string][2]bool{
			"mended": {true, false}, "dismissed": {false, true}, "answered": {true, true}, "open": {true, false},
			"gone": {true, false},
		} {
			if got := [2]bool{
				strings.Contains(open, "It is "+name), strings.Contains(final, "It is "+name),
			}; got != places {
				w.Errorf("the agent is told of %s: open and settled are %v", name, got)
			}
		}
		if b.Since != first || !strings.Contains(b.System, "reviewed before, at "+hub.ShortSHA(first)) {
			w.Errorf("since %q\n%s", b.Since, b.System)
		}

		e := w.rechecked(n, map[string]findings.Status{
			"mended": findings.Fixed, "dismissed": findings.Open, "open": findings.Open, "gone": findings.Outdated,
		},
			flaw("dismissed", 3), flaw("answered", 6), flaw("open", 7))
		w.close(task, e)
		w.close(task, e) // after an answer that was lost
		if got := len(w.hub.Reviews(repo, n)); got != 1 {
			w.Errorf("%d reviews: someone was notified", got)
		}
		me := must(w.src.forge.Login(w.Context()))
		got := map[string]string{}
		for name, th := range w.told(n) {
			got[name] = fmt.Sprintf("%q by %q", th.Comments[len(th.Comments)-1].User, th.ResolvedBy)
		}
		want := map[string]string{
			"mended": fmt.Sprintf("%q by %q", me, me), "gone": fmt.Sprintf("%q by %q", me, me),
			"dismissed": fmt.Sprintf("%q by %q", me, "octocat"),
			"answered":  `"bob" by ""`, "open": `"linter[bot]" by ""`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("last words and who resolved (-want +got):\n%s", diff)
		}
		words := strings.NewReplacer(first, "<first>", w.pull(n).HeadSHA, "<head>", hub.ShortSHA(first), "<first>",
			hub.ShortSHA(w.pull(n).HeadSHA), "<head>", w.hub.URL(), "<github>")
		if !w.src.forge.IsApp() {
			return
		}
		for _, name := range []string{"mended", "gone"} {
			golden(w.T, "reply."+name, words.Replace(w.told(n)[name].Comments[1].Body))
		}
		number := regexp.MustCompile(`discussion_r\d+`)
		golden(w.T, "comment.again", number.ReplaceAllString(words.Replace(w.hub.Comments(repo, n)[0].Body),
			"discussion_r<n>"))
	})
}

// An interrupted report should continue, and no thread be answered twice.
func TestReReviewGoesOn(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("One.", flaw("mended", 1)))
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 1, "better")}))
	task, e := w.task(n, 1), w.rechecked(n, map[string]findings.Status{"mended": findings.Fixed})
	limited := githubfake.Failure{
		Status: 200, Body: `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`,
	}
	pass := githubfake.Failure{Hold: closedChan()}
	for i, c := range []struct {
		failures []githubfake.Failure // of GraphQL, one after the other
		reply    *githubfake.Failure
		replies  int
	}{
		{failures: []githubfake.Failure{{Status: 502}}},
		{failures: []githubfake.Failure{limited}},
		{failures: []githubfake.Failure{pass, {
			Status: 200, Body: `{"errors":[{"message":"Something went wrong"}]}`,
		}}},
		{reply: &githubfake.Failure{Status: 502}},
		{reply: &githubfake.Failure{Status: 502, After: true}, replies: 1},
		{failures: []githubfake.Failure{pass, pass, {Status: 502}}, replies: 1},
		{failures: []githubfake.Failure{pass, pass, {Status: 502, After: true}}, replies: 1},
	} {
		for _, f := range c.failures {
			w.hub.Fail(askThreads, f)
		}
		if c.reply != nil {
			w.hub.Fail(createReply, *c.reply)
		}
		if err := w.report(task).Close(w.Context(), e); err == nil {
			w.Errorf("attempt %d: no error", i+1)
		}
		if got := len(w.told(n)["mended"].Comments) - 1; got != c.replies {
			w.Errorf("attempt %d: %d replies, want %d", i+1, got, c.replies)
		}
	}
	w.close(task, e)
	if th := w.told(n)["mended"]; len(th.Comments) != 2 || th.ResolvedBy == "" {
		w.Errorf("%+v", th)
	}
}

func closedChan() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// requested is a requested review of a head that may have been reviewed.
func requested(t tasks.Task) tasks.Task {
	t.Origin = []byte(strings.Replace(string(t.Origin), `"action":"opened"`, `"action":"review_requested"`, 1))
	return t
}

// Where GitHub does not show or end threads, there is still a review.
func TestReReviewWithoutThreads(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("One.", flaw("mended", 1), flaw("open", 7)))
	e := w.rechecked(n, map[string]findings.Status{"mended": findings.Fixed})
	refused := githubfake.Failure{
		Status: 200, Times: -1,
		Body: `{"data":{"repository":null},"errors":[{"type":"FORBIDDEN","path":["repository"],"message":"x"}]}`,
	}
	w.hub.Fail(askThreads, refused)
	task := requested(w.task(n, 1))
	if b := must(w.src.Brief(w.Context(), task, "")); !strings.Contains(b.System, "It is open") {
		w.Error(b.System)
	}
	w.close(task, e)
	if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "1 still open, 1 fixed") {
		w.Error(body)
	}
}

// A review that was overtaken is not remembered: the next one says it all.
func TestOvertakenReviewIsForgotten(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.openCode("ten")
	task := w.task(n, 0)
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"more.txt": "more\n"}))
	w.close(task, reviewed("One.", flaw("one", 1)))
	w.wantReviews(n)
	if b := must(w.src.Brief(w.Context(), w.task(n, 1), "")); b.Since != "" {
		w.Error("since", b.Since)
	}
	w.close(w.task(n, 1), reviewed("One.", flaw("one", 1)))
	w.wantReviews(n, []string{"ten.txt:1 one"})
}

// The author of a pull request from a fork may answer and resolve threads, but cannot silence a review with that.
func TestForkAuthorSettlesNothing(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	w.hub.SetPermission(repo, "ben", "write")
	n := must(w.hub.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: "theirs", Fork: true, User: "stranger", Title: "Add ten lines",
		Files: map[string]string{"ten.txt": lines(10, 0, "")},
	}))
	f.label(n, DefaultForkLabel, "ben")
	task := f.only()
	w.close(task, reviewed("Three.", flaw("answered", 1), flaw("resolved", 3), flaw("dismissed", 5)))
	must(w.hub.ReplyThread(w.Context(), repo, n, w.told(n)["answered"].Comment, "stranger", "On purpose."))
	w.resolve(n, "resolved", "stranger")
	w.resolve(n, "dismissed", "ben")

	text := w.briefed(task).System
	open, final, _ := strings.Cut(text, `<outside what="settled findings">`)
	if strings.Count(open, "It is ") != 2 || strings.Count(final, "It is ") != 1 ||
		!strings.Contains(final, "It is dismissed") {
		w.Errorf("the agent gets\n%s", text)
	}
	task.ID = tasks.NewID(time.Now(), "github", "again")
	w.close(task, w.rechecked(n, nil, flaw("answered", 1), flaw("resolved", 3), flaw("dismissed", 5)))
	if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "2 still open") {
		w.Error(body)
	}
}

// If all memory is lost, posted findings should be found by their marks, and dismissed ones stay dismissed.
func TestLostMemory(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("Two.", flaw("dismissed", 3), flaw("open", 7)))
	if err := w.hub.ResolveThread(w.Context(), repo, n, w.told(n)["dismissed"].Comment, "octocat", true); err != nil {
		t.Fatal(err)
	}
	forget := func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	if err := w.db.Memos.ChangeMemo(w.Context(),
		w.ledger(n).Name, forget); err != nil {
		t.Fatal(err)
	}
	w.close(w.task(n, 1), reviewed("Three.", flaw("dismissed", 4), flaw("open", 7), flaw("new", 9)))
	w.wantReviews(n, []string{"ten.txt:3 dismissed", "ten.txt:7 open"}, []string{"ten.txt:9 new"})
}

// After five automatic reviews, the last one should say how to go on. Requested and failed reviews should not count.
func TestPauseAfterFiveReviews(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.openCode("ten")
	if err := w.src.memory.ChangeState(t.Context(), thread.Ref{Repo: repo, Number: n}, func(p *subject.State) error {
		p.Reviews = subject.MaxReviews - 2
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		task, e := w.task(n, 2*i), reviewed("Well.")
		if i%4 == 0 {
			e = answered("Well, in words.")
		}
		byPerson := i%2 == 1
		if byPerson {
			o := must(subject.Of(task))
			o.Action = "review_requested"
			task.Origin = must(json.Marshal(o))
		}
		w.close(w.task(n, 2*i+1), tasks.Ending{Kind: tasks.Failed, At: ended.Add(-time.Hour)})
		w.close(task, e)
		w.close(task, e) // is not counted twice
		if got := strings.Contains(w.hub.Comments(repo, n)[0].Body, "Comment `/review`"); got != (i >= 2) {
			w.Errorf("review %d: says how to go on: %v", i+1, got)
		}
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{fmt.Sprint(i): "more\n"}))
	}
}

// A full review should know the earlier findings and still cover everything.
func TestFullReview(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("One.", flaw("open", 7)))
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"more.txt": "more\n"}))
	small := flaw("small", 2)
	small.Severity = findings.Minor
	for i, full := range []bool{false, true} {
		task := w.task(n, i+1)
		o := must(subject.Of(task))
		o.Full, o.Action = full, "review_requested"
		task.Origin = must(json.Marshal(o))
		b := must(w.src.Brief(w.Context(), task, ""))
		if (b.Since == "") != full || !strings.Contains(b.System, "It is open") {
			w.Errorf("full %v: since %q\n%s", full, b.Since, b.System)
		}
		w.close(task, reviewed("Two.", flaw("open", 7), small))
		if got := len(w.hub.Reviews(repo, n)) == 2; got != full {
			w.Errorf("full %v: the small one is told: %v", full, got)
		}
		must(w.hub.PushPR(w.Context(), repo, n, map[string]string{fmt.Sprint(i): "more\n"}))
	}
}

// A retried task has another answer: its earlier findings are known, and its new ones should be posted.
func TestReviewTriedAgain(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	task := w.task(n, 0)
	w.close(task, reviewed("One.", flaw("wasteful", 1)))
	again := reviewed("Two.", flaw("wasteful", 1), flaw("racy", 9))
	again.At, again.Retried = ended.Add(time.Minute), ended.Add(time.Second)
	w.close(task, again)
	w.close(task, again)
	w.wantReviews(n, []string{"ten.txt:1 wasteful"}, []string{"ten.txt:9 racy"})
	if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "1 new finding, 1 still open") {
		w.Error(body)
	}
}

// Redis lost the ending of a review, and the task was superseded before it ran again: its verdict stays.
func TestVerdictStays(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		task := w.task(n, 0)
		w.close(task, reviewed("One.", flaw("wasteful", 1)))
		must(0, w.src.deleteComment(w, w.hub.Comments(repo, n)[0].ID)) // a review of a later head would replace it
		sha := w.pull(n).HeadSHA
		before := len(w.hub.Statuses(repo, sha)) + len(w.hub.CheckRuns(repo, sha))
		found, err := w.src.Final(w.Context(), task, time.Time{})
		if err != nil || found == nil {
			w.Fatalf("found %v, %v", found, err)
		}
		w.close(task, tasks.Ending{Kind: tasks.Cancelled, By: "Superseded", At: time.Now().Add(time.Hour)})
		if got := len(w.hub.Statuses(repo, sha)) + len(w.hub.CheckRuns(repo, sha)); got != before {
			w.Errorf("%d indicators, %d before", got, before)
		}
		if got := w.hub.Comments(repo, n); len(got) != 0 {
			w.Errorf("commented again: %+v", got)
		}
	})
}
