package github

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

const (
	createReview = "POST /repos/{o}/{r}/pulls/{n}/reviews"
	listReviews  = "GET /repos/{o}/{r}/pulls/{n}/reviews"
	listFiles    = "GET /repos/{o}/{r}/pulls/{n}/files"
	getPull      = "GET /repos/{o}/{r}/pulls/{n}"
)

// openCode opens a pull request that adds ten lines.
func (w *world) openCode(head string) int {
	w.Helper()
	var text strings.Builder
	for i := range 10 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	return must(w.hub.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: head, Title: "Add ten lines", Files: map[string]string{"ten.txt": text.String()},
	}))
}

// flaw is a finding at a line of that file.
func flaw(id string, line int) findings.Finding {
	return findings.Finding{
		ID: id, Severity: findings.Major, Confidence: findings.High, Path: "ten.txt", Line: line,
		Original: fmt.Sprint("line ", line),
		Claim:    "It is " + id + ", @octocat.", Evidence: "Read it.\n\n```go\n@octocat",
	}
}

// reviewed is the ending of a run with those findings.
func reviewed(summary string, list ...findings.Finding) tasks.Ending {
	e := answered("")
	e.Result.Structured = must(json.Marshal(findings.Answer{
		Findings: slices.Concat([]findings.Finding{}, list), Summary: summary,
	}))
	e.Result.Text = string(e.Result.Structured)
	return e
}

// wantReviews compares the reviews of a pull request with their comments: "path:line finding".
func (w *world) wantReviews(n int, want ...[]string) {
	w.Helper()
	var got [][]string
	for _, v := range w.hub.Reviews(repo, n) {
		all := []string{}
		for _, c := range w.hub.ReviewComments(repo, n) {
			if _, ours := findings.FindingOf(c.Body); ours && c.ReviewID == v.ID && c.InReplyTo == 0 {
				_, said, _ := strings.Cut(c.Body, "It is ") // as in flaw: the name in the mark is the ledger's
				id, _, _ := strings.Cut(said, ",")
				all = append(all, fmt.Sprintf("%s:%d %s", c.Path, c.Line, id))
			}
		}
		got = append(got, all)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Error(diff)
	}
}

// light is what the sign at a commit says in the end: the conclusion of a check run and its title, or the
// description of a status.
func (w *world) light(sha string) string {
	w.Helper()
	said := ""
	for _, c := range w.hub.CheckRuns(repo, sha) {
		said = c.Conclusion + ": " + c.Title
	}
	for _, s := range w.hub.Statuses(repo, sha) {
		said = s.Description
	}
	return said
}

// The exact text of a posted review.
func TestFindingBodies(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	exact := flaw("exact", 3)
	exact.StartLine, exact.Original, exact.Suggestion, exact.Severity = 2, "line 2\nline 3", "line two and three",
		findings.Critical
	advice := flaw("advice", 5)
	advice.Original, advice.Suggestion, advice.Severity = "\tline 5", "Leave it out.", findings.Minor
	elsewhere := flaw("elsewhere", 99)
	unsure := flaw("unsure", 1)
	unsure.Confidence, unsure.Evidence = findings.Low, "<!-- errand:finding=x --> ![](https://evil.example/x)"
	w.close(w.task(n, 0), reviewed("Ten lines, @octocat, two of them odd.", exact, advice, elsewhere, unsure))

	head := w.pull(n).HeadSHA
	words := strings.NewReplacer(head, "<head>", hub.ShortSHA(head), "<short>", w.hub.URL(), "<github>")
	comments := w.hub.ReviewComments(repo, n)
	if len(comments) != 2 || comments[0].StartLine != 2 || comments[0].Line != 3 || comments[0].CommitID != head {
		t.Fatalf("%+v", comments)
	}
	for i, name := range []string{"suggestion", "advice"} {
		golden(t, "inline."+name, words.Replace(comments[i].Body))
	}
	v := w.hub.Reviews(repo, n)[0]
	if v.State != "COMMENTED" || v.CommitID != head {
		t.Errorf("%+v", v)
	}
	golden(t, "review", words.Replace(v.Body))
	golden(t, "comment.findings", words.Replace(w.hub.Comments(repo, n)[0].Body))
	c := w.hub.CheckRuns(repo, head)[0]
	golden(t, "check.findings", words.Replace(fmt.Sprintf("%s\n%s\n\n%s\n", c.Conclusion, c.Title, c.Summary)))

	n = w.openCode("fine")
	head = w.pull(n).HeadSHA
	words = strings.NewReplacer(head, "<head>", hub.ShortSHA(head), "<short>", w.hub.URL(), "<github>")
	w.close(w.task(n, 1), reviewed("All is well."))
	golden(t, "comment.none", words.Replace(w.hub.Comments(repo, n)[0].Body))
	runs := w.hub.CheckRuns(repo, head) // two branches of one second may have one head
	c = runs[len(runs)-1]
	golden(t, "check.none", words.Replace(fmt.Sprintf("%s\n%s\n\n%s\n", c.Conclusion, c.Title, c.Summary)))
	w.wantReviews(n) // nothing to post: no notification
}

func TestFindings(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	var all []findings.Finding
	for i := range 8 {
		all = append(all, flaw(fmt.Sprint("f", i), i+1))
	}
	task := w.task(n, 0)
	w.close(task, reviewed("Much.", all...))
	w.close(task, reviewed("Much.", all...)) // after an answer that was lost
	w.wantReviews(n, []string{
		"ten.txt:1 f0", "ten.txt:2 f1", "ten.txt:3 f2", "ten.txt:4 f3", "ten.txt:5 f4", "ten.txt:6 f5",
	})
	w.wantSaid(n, "0 ME 0: Much.")
	body := w.hub.Comments(repo, n)[0].Body
	if !strings.Contains(body, "8 new findings") || strings.Count(body, "ten.txt:") != 8 ||
		strings.Count(body, "Read it.") != 2 {
		w.Error(body)
	}
	if got := strings.TrimPrefix(w.light(w.pull(n).HeadSHA), "neutral: "); got != "8 new findings" &&
		got != "8 new findings, see the conversation" {
		w.Error(got)
	}
}

// An interrupted report should continue, and nothing be submitted twice.
func TestFindingsGoOn(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	task, e := w.task(n, 0), reviewed("One.", flaw("one", 1), flaw("two", 99))
	for i, f := range []struct {
		route   string
		failure githubfake.Failure
		Reviews int
	}{
		{listReviews, githubfake.Failure{Status: 502}, 0},
		{listFiles, githubfake.Failure{Status: 502}, 0},
		{getPull, githubfake.Failure{Status: 502}, 0},
		{createReview, githubfake.Failure{
			Status: 422, Body: `{"message":"x","errors":["was submitted too quickly"]}`,
		}, 0},
		{createReview, githubfake.Failure{Status: 502}, 0},
		{createReview, githubfake.Failure{Status: 502, After: true}, 1},
		{"GET /repos/{o}/{r}/pulls/{n}/reviews/{id}/comments", githubfake.Failure{Status: 502}, 1},
		{createComment, githubfake.Failure{After: true}, 1},
	} {
		w.hub.Fail(f.route, f.failure)
		if err := w.report(task).Close(w.Context(), e); err == nil || len(w.hub.Reviews(repo, n)) != f.Reviews {
			w.Errorf("attempt %d: %v, %d reviews, want %d", i+1, err, len(w.hub.Reviews(repo, n)), f.Reviews)
		}
	}
	// Another user's copy of the mark should not count, and a push after the review should not undo it.
	must(w.hub.Review(w.Context(), repo, n, "mallory", "COMMENT", marked("findings", task, e)))
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": "none\n"}))
	w.close(task, e)
	if got := len(w.hub.Reviews(repo, n)); got != 2 {
		w.Errorf("%d reviews", got)
	}
	w.wantSaid(n, "0 ME 0: One.")
	if body := w.hub.Comments(repo, n)[0].Body; strings.Count(body, "Read it.") != 1 ||
		!strings.Contains(body, "#### New, on lines of the diff\n\n- 🟠 **major**") {
		w.Error(body)
	}
}

// A head that is not there any more gets no comments, wherever the push meets the review.
func TestFindingsOfAnOldHead(t *testing.T) {
	both(t, func(w *world) {
		n := w.openCode("ten")
		task := w.task(n, 0)
		old := w.pull(n).HeadSHA
		hold := make(chan struct{})
		w.hub.Fail(listFiles, githubfake.Failure{Hold: hold})
		r, done := w.report(task), make(chan error, 1)
		go func() { done <- r.Close(w.Context(), reviewed("One.", flaw("one", 1))) }()
		w.wait(func() bool { return len(w.hub.Calls(listFiles)) > 0 })
		head := must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"more.txt": "more\n"}))
		close(hold)
		if err := <-done; err != nil {
			w.Fatal(err)
		}
		w.wantReviews(n)
		w.wantSaid(n, "0 ME 0: The pull request has moved on to "+hub.ShortSHA(head))
		if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "Read it.") {
			w.Error(body)
		}
		want := "neutral: Superseded"
		if !w.src.forge.IsApp() {
			want = "Superseded by " + hub.ShortSHA(head) + "."
		}
		if got := w.light(old); got != want {
			w.Errorf("%q, want %q", got, want)
		}
		words := strings.NewReplacer(old, "<head>", hub.ShortSHA(old), "<short>", hub.ShortSHA(head), "<newer>",
			w.hub.URL(), "<github>")
		golden(w.T, "comment.moved", words.Replace(w.hub.Comments(repo, n)[0].Body))
		for _, c := range w.hub.CheckRuns(repo, old) {
			golden(w.T, "check.moved", words.Replace(fmt.Sprintf("%s\n%s\n\n%s\n", c.Conclusion, c.Title, c.Summary)))
		}
		// Nor is a head that is gone said to be without findings.
		none := w.task(n, 1)
		none.Origin = task.Origin
		w.close(none, reviewed("None."))
		if got := w.light(old); got != want {
			w.Errorf("%q, want %q", got, want)
		}
	})
}

// GitHub takes no comment at a line: all is tried again once, then the findings are in the review's own text, and a
// review that is refused
// altogether leaves them to the summary.
func TestFindingsRefused(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	refusal := githubfake.Failure{
		Status: 422, Body: `{"message":"Unprocessable Entity","errors":["Line could not be resolved"]}`,
	}
	for i, c := range []struct {
		failure githubfake.Failure
		times   int
		Reviews [][]string
		calls   int
		bodies  int // that hold the evidence
	}{
		{refusal, 1, [][]string{{"ten.txt:1 one"}}, 2, 1},
		{refusal, 2, [][]string{{}}, 3, 1},
		{refusal, 3, nil, 3, 1},
		{githubfake.Failure{Status: 403, Body: `{"message":"locked"}`}, 1, nil, 1, 1},
	} {
		n := w.openCode(fmt.Sprint("ten", i))
		task, e := w.task(n, i), reviewed("One.", flaw("one", 1))
		c.failure.Times = c.times
		lift := w.hub.Fail(createReview, c.failure)
		before := len(w.hub.Calls(createReview))
		w.close(task, e)
		lift()
		if got := len(w.hub.Calls(createReview)) - before; got != c.calls {
			w.Errorf("%d: %d attempts, want %d", i, got, c.calls)
		}
		w.wantReviews(n, c.Reviews...)
		w.wantSaid(n, "0 ME 0: One.")
		bodies := w.hub.Comments(repo, n)[0].Body
		for _, v := range w.hub.Reviews(repo, n) {
			bodies += v.Body
		}
		for _, v := range w.hub.ReviewComments(repo, n) {
			bodies += v.Body
		}
		if got := strings.Count(bodies, "Read it."); got != c.bodies {
			w.Errorf("%d: said %d times\n%s", i, got, bodies)
		}
		if len(c.Reviews) == 0 {
			continue
		}
		// When found again, it should be announced in the same way.
		comment := w.hub.Comments(repo, n)[0]
		must(0, w.src.deleteComment(w, comment.ID))
		w.close(task, e)
		if got := w.hub.Comments(repo, n)[0].Body; got != comment.Body {
			w.Error(cmp.Diff(comment.Body, got))
		}
		w.wantReviews(n, c.Reviews...)
	}
}

// deleteComment removes our comment as another user.
func (s *Source) deleteComment(w *world, id int64) error {
	o := thread.Ref{Repo: repo}
	if s.forge.IsApp() {
		o = must(subject.Of(w.task(1, 0))).Ref
	}
	_, err := must(s.api.Reach(w.Context(), o)).GH.Issues.DeleteComment(w.Context(), "acme", "api", id)
	return err
}

// A pull request may have more files than a page holds.
func TestFindingsInManyFiles(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	files := map[string]string{}
	for i := range 201 {
		files[fmt.Sprintf("f%03d.txt", i)] = "x\n"
	}
	for i, c := range []struct{ path, pages string }{
		{"f000.txt", "1"}, {"f150.txt", "2"}, {"f200.txt", "3"}, {"none.txt", "3"}, {"", "0"},
	} {
		n := must(w.hub.OpenPR(w.Context(), githubfake.PR{
			Repo: repo, Head: fmt.Sprint("many", i), Title: "Many", Files: files,
		}))
		f := flaw("one", 1)
		f.Path, f.Original = c.path, "x"
		before := len(w.hub.Calls(listFiles))
		w.close(w.task(n, i), reviewed("One.", f))
		if got := fmt.Sprint(len(w.hub.Calls(listFiles)) - before); got != c.pages {
			w.Errorf("%s: %s pages read, want %s", c.path, got, c.pages)
		}
		if got := len(w.hub.ReviewComments(repo, n)); got != 1 && c.path != "none.txt" && c.path != "" {
			w.Errorf("%s: %d comments", c.path, got)
		}
	}
}

// An answer without findings, or with what is none, is posted as it is.
func TestAnswerWithoutFindings(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	odd := answered("All is well.")
	odd.Result.Structured = json.RawMessage(`{"findings": "none"}`)
	for i, e := range []tasks.Ending{answered("All is well."), odd} {
		e.At = ended.Add(time.Duration(i) * time.Second)
		w.close(w.task(n, i), e)
		w.wantSaid(n, fmt.Sprintf("0 ME %d: All is well.", i))
	}
	w.wantReviews(n)
	if got := len(w.hub.Calls(listReviews)); got != 0 {
		w.Errorf("looked %d times for a review", got)
	}
	if !strings.Contains(w.logs.String(), "review without findings") {
		w.Error("nothing was logged")
	}
	// One that was stopped has no findings, whatever it had begun.
	broken := reviewed("One.", flaw("one", 1))
	broken.Kind, broken.Reason = tasks.Failed, "It broke."
	m := w.openCode("more")
	w.close(w.task(m, 2), broken)
	w.wantReviews(m)
}

// What has a second look: findings above minor that are new, unless the repository wants none. Its verdicts are posted.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	look := func(task tasks.Task, list ...findings.Finding) (*tasks.SecondLook, tasks.Ending) {
		e := reviewed("Some.", list...)
		b := must(w.src.Brief(w.Context(), task, w.TempDir()))
		return b.SecondLook(w.Context(), e.Result.Structured), e
	}
	small := flaw("small", 1)
	small.Severity = findings.Minor
	task := w.task(n, 0)
	if l, _ := look(task, small); l != nil {
		w.Error("a minor finding has a second look")
	}
	l, e := look(task, flaw("wrong", 2), flaw("unsure", 3), small)
	if l.Doing != "Checking 2 findings" || !strings.Contains(l.System, "- id wrong, major, ten.txt:2: It is wrong, @octocat.\n") ||
		strings.Contains(l.System, "small") {
		w.Errorf("%+v", l)
	}
	if _, err := l.Merge(json.RawMessage(`{"verdicts": []}`)); err == nil {
		w.Error("no verdicts are verdicts")
	}
	unchecked := must(findings.Read(must(l.Merge(nil))))
	if v := unchecked.Findings; len(v) != 3 || v[0].Verdict != findings.Unchecked || v[2].Verdict != "" {
		w.Errorf("%+v", unchecked)
	}
	e.Result.Structured = must(l.Merge(json.RawMessage(`{"verdicts": [
		{"id": "wrong", "verdict": "refuted", "reason": "It is right, @octocat."},
		{"id": "unsure", "verdict": "uncertain", "reason": "Who knows, @octocat?"}
	]}`)))
	source := w.src.Capabilities().Reviews
	if r := must(source.Result(w.Context(), task, e)); r.Reported != 2 || !strings.Contains(r.Text, "1 finding was dropped") {
		w.Errorf("before it is posted: %+v", r)
	}
	w.close(task, e)
	w.wantReviews(n, []string{"ten.txt:3 unsure", "ten.txt:1 small"})
	said := w.hub.Comments(repo, n)[0].Body + w.hub.ReviewComments(repo, n)[0].Body
	for _, want := range []string{
		"1 finding was dropped after a second look, ", "It is wrong", "Dropped: It is right", "**Uncertain** after a second look: Who knows",
	} {
		if !strings.Contains(said, want) || strings.Contains(said, " @octocat") {
			w.Errorf("no %q, or a mention: %s", want, said)
		}
	}
	if r := must(source.Result(w.Context(), task, e)); !strings.Contains(r.Text, "1 finding was dropped after a second look, ") {
		w.Errorf("on the task's page: %s", r.Text)
	}

	before, since, _ := strings.Cut(must(w.src.Brief(w.Context(), w.task(n, 0), w.TempDir())).System, "looked at again and refuted")
	if !strings.Contains(since, "- major, ten.txt:2: It is wrong") || strings.Contains(before, "It is wrong") {
		w.Errorf("the next review does not hear what was refuted: %s", before+since)
	}

	w = withApp(t)
	w.setUp(map[string]string{settings.File: "review: {verify: false}\n"})
	n = w.openCode("ten")
	own := flaw("wrong", 2)
	if l, _ := look(w.task(n, 0), own); l != nil {
		w.Error("the repository wants no second look")
	}
	own.Verdict, own.Reason = findings.Refuted, "I say so."
	l, _ = look(w.task(n, 0), own)
	if a := must(findings.Read(must(l.Merge(nil)))); l.Prompt != "" || a.Findings[0].Verdict != "" || a.Findings[0].Reason != "" {
		w.Errorf("the first agent has judged its own finding: %+v", a)
	}
}

// If the repository's settings cannot be read, the findings are posted, and the summary says that they are unchecked.
func TestSecondLookCannotBeAskedFor(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	task, e := w.task(n, 0), reviewed("Some.", flaw("one", 2))
	b := must(w.src.Brief(w.Context(), task, w.TempDir()))
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	l := b.SecondLook(ctx, e.Result.Structured)
	if l.Prompt != "" {
		w.Fatalf("asked: %+v", l)
	}
	e.Result.Structured = must(l.Merge(nil))
	w.close(task, e)
	w.wantReviews(n, []string{"ten.txt:2 one"})
	if said := w.hub.Comments(repo, n)[0].Body; !strings.Contains(said, "1 new finding had no second look.") {
		w.Error(said)
	}
}

// A second look does not make an answer too long to be read. If it did, the first answer would count.
func TestSecondLookAtALongAnswer(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	task := w.task(w.openCode("ten"), 0)
	for evidence, fits := range map[string]bool{strings.Repeat("<", 1900): true, "a" + strings.Repeat("\u2028", 1000) + "a": false} {
		var list []string
		for i := range 100 {
			list = append(list, fmt.Sprintf(`{"id": "f%d", "severity": "major", "confidence": "high", "path": "ten.txt", "line": %d,
				"claim": "C%d", "evidence": "%s", "original": "%s"}`, i, i, i, evidence, evidence[:1500]))
		}
		answer := json.RawMessage(`{"summary": "Many.", "findings": [` + strings.Join(list, ",") + "]}")
		l := must(w.src.Brief(w.Context(), task, w.TempDir())).SecondLook(w.Context(), answer)
		if l == nil {
			t.Fatalf("an answer of %d bytes cannot be read", len(answer))
		}
		merged, err := l.Merge(nil)
		if (err == nil) != fits {
			t.Errorf("merged %d bytes to %d: %v", len(answer), len(merged), err)
		}
		if _, err := findings.Read(merged); fits && err != nil {
			t.Error(err)
		}
	}
}

// A repository says how grave a finding has to be and how many there may be, and hears in the summary what in its
// settings means nothing.
func TestFindingsAsTheRepositoryWants(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.setUp(map[string]string{".github/errand.yaml": "review: {severity: major, max_findings: 1}\nspeed: \"@octocat\"\n"})
	n := w.openCode("ten")
	minor := flaw("minor", 1)
	minor.Severity = findings.Minor
	w.close(w.task(n, 0), reviewed("Some.", minor, flaw("two", 2), flaw("three", 3)))
	w.wantReviews(n, []string{"ten.txt:2 two"})
	golden(w.T, "comment.settings", strings.NewReplacer(
		w.pull(n).HeadSHA, "<head>", hub.ShortSHA(w.pull(n).HeadSHA), "<short>", w.hub.URL(), "<github>",
	).Replace(w.hub.Comments(repo, n)[0].Body))
	// What can be read later is waited for; what cannot be read at all holds nothing up.
	task, e := w.task(n, 1), reviewed("More.", flaw("four", 4), flaw("five", 5))
	for status, goes := range map[int]bool{502: false, 403: true} {
		other := w.source(func(c *config) { *c = w.conf }) // one that has not read them yet
		lift := w.hub.Fail("GET /repos/{o}/{r}/contents/{path}", githubfake.Failure{Status: status, Times: -1})
		err := must(other.Open(w.Context(), task)).Close(w.Context(), e)
		lift()
		if (err == nil) != goes {
			w.Errorf("%d: %v", status, err)
		}
	}
	w.wantReviews(n, []string{"ten.txt:2 two"}, []string{"ten.txt:4 four", "ten.txt:5 five"})
}

// Text beyond a comment's limit should continue in the next one, and a cut in a block of code should notify no one
// and load nothing.
func TestManyFindings(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.openCode("ten")
	var all []findings.Finding
	for i := range 60 {
		f := flaw(fmt.Sprint("f", i), 99)
		f.Evidence = "```\n" + strings.Repeat("@octocat ![](x)\n\n", 110)
		all = append(all, f)
	}
	w.close(w.task(n, 0), reviewed("Much.", all...))
	comments := w.hub.Comments(repo, n)
	if len(comments) < 2 {
		t.Fatalf("%d comments", len(comments))
	}
	for i, c := range comments {
		_, said, _ := strings.Cut(c.Body, "**\n\n")
		said, _, _ = strings.Cut(said, "\n\n---\n<sub>")
		if len(c.Body) > hub.MaxComment || said == "" || markdown.Neutral(said) != said {
			t.Errorf("part %d has %d bytes: %.300q", i+1, len(c.Body), c.Body)
		}
	}
}
