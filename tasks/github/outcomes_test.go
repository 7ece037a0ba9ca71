package github

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/intake"
)

// of returns a finding with that kind.
func of(kind findings.Kind, f findings.Finding) findings.Finding {
	f.Kind = kind
	return f
}

// wantAcceptance compares the counts of the repository.
func (w *world) wantAcceptance(want ...tasks.Acceptance) {
	w.Helper()
	if diff := cmp.Diff(want, must(w.src.Capabilities().Reviews.Acceptance(w.Context(), "Acme/api"))); diff != "" {
		w.Error(diff)
	}
}

// dislike marks a finding 👎.
func (w *world) dislike(n int, finding, login string) {
	w.Helper()
	if err := w.hub.ReactToThread(repo, n, w.told(n)[finding].Comment, login, "-1"); err != nil {
		w.Fatal(err)
	}
}

// resolve resolves the thread of a finding.
func (w *world) resolve(n int, finding, login string) {
	w.Helper()
	if err := w.hub.ResolveThread(w.Context(), repo, n, w.told(n)[finding].Comment, login, true); err != nil {
		w.Fatal(err)
	}
}

// Outcomes are counted per kind with the next review and when the pull request is closed, each once.
func TestOutcomesAreCounted(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	n := w.openCode("ten")
	e := reviewed("Six.", of("tests", flaw("mended", 1)), of("tests", flaw("disliked", 3)),
		of("security", flaw("resolved", 5)),
		flaw("changed", 7), of("security", flaw("stranger", 9)), of("tests", flaw("open", 10)))
	w.close(w.task(n, 0), e)
	w.close(w.task(n, 0), e)
	w.wantAcceptance()

	w.dislike(n, "disliked", "octocat")
	w.dislike(n, "stranger", "mallory")
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": strings.Replace(lines(10, 1, "better"),
		"line 7", "line seven", 1)}))
	w.resolve(n, "changed", "octocat")
	again := w.task(n, 1)
	e = w.rechecked(n, map[string]findings.Status{"mended": findings.Fixed})
	w.close(again, e)
	w.close(again, e)
	w.resolve(n, "resolved", "octocat")
	w.resolve(n, "stranger", "mallory")
	w.wantAcceptance(tasks.Acceptance{Kind: "other", Fixed: 1},
		tasks.Acceptance{Kind: "tests", Fixed: 1, Dismissed: 1})
	if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "3 still open, 1 fixed") {
		w.Error(body)
	}

	if err := w.hub.ChangePR(w.Context(), repo, n, "merged", "octocat"); err != nil {
		w.Fatal(err)
	}
	for range 2 { // the second one is a redelivery, and the first a copy of what came over the wire
		must(w.src.interpreter(f.desk).interpret(w.Context(), intake.Event{
			ID: "d", Kind: "pull_request closed",
			Body: must(json.Marshal(must(w.hub.Payload("closed", repo, n, "octocat")))),
		}))
	}
	w.wantAcceptance(tasks.Acceptance{Kind: "other", Fixed: 1},
		tasks.Acceptance{Kind: "security", Dismissed: 1, Ignored: 1},
		tasks.Acceptance{Kind: "tests", Fixed: 1, Dismissed: 1, Ignored: 1})
}

// A thread that is resolved after a change of its file may have been fixed beside its line, so it does not count as
// dismissed; a 👎 does, and so does a thread in another file.
func TestOutcomeOfAFixBesideTheLine(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := must(w.hub.OpenPR(w.Context(), githubfake.PR{
		Repo: repo, Head: "two", Title: "Add two files",
		Files: map[string]string{
			"ten.txt": lines(10, 0, ""), "other.txt": "line 1\n",
		},
	}))
	elsewhere := flaw("elsewhere", 1)
	elsewhere.Path = "other.txt"
	w.close(w.task(n, 0), reviewed("Four.", flaw("beside", 3), elsewhere, flaw("disliked", 8), flaw("named", 10)))
	must(w.hub.PushPR(w.Context(), repo, n, map[string]string{"ten.txt": lines(10, 4, "mended")}))
	w.dislike(n, "disliked", "octocat")
	for _, finding := range []string{"beside", "elsewhere", "disliked", "named"} {
		w.resolve(n, finding, "octocat")
	}
	w.close(w.task(n, 1), w.rechecked(n, map[string]findings.Status{"beside": findings.Fixed}))
	w.wantAcceptance(tasks.Acceptance{Kind: "other", Dismissed: 2})

	o := must(subject.Of(w.task(n, 1)))
	id, _ := findings.FindingOf(w.told(n)["named"].Comments[0].Body)
	if err := w.ledger(n).Change(w.Context(), func(l *findings.Ledger) error {
		l.Dismiss(id, "octocat")
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	if err := w.src.reviews.CloseFindings(w.Context(), o, true); err != nil {
		w.Fatal(err)
	}
	w.wantAcceptance(tasks.Acceptance{Kind: "other", Dismissed: 3})
}

// A pull request that is closed without a merge leaves its open findings uncounted.
func TestOutcomesOfAnAbandonedPullRequest(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("Two.", flaw("open", 1), flaw("disliked", 3)))
	w.dislike(n, "disliked", "octocat")
	for range 2 {
		if err := w.src.reviews.CloseFindings(w.Context(), must(subject.Of(w.task(n, 0))), false); err != nil {
			t.Fatal(err)
		}
	}
	w.wantAcceptance(tasks.Acceptance{Kind: "other", Dismissed: 1})
}

// If an event is lost, or GitHub fails after it, a poll counts the outcomes of a closed pull request.
func TestMissedOutcomes(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.hub.Deliver("")
	merged, abandoned := f.openCode("merged"), f.openCode("abandoned")
	for i, n := range []int{merged, abandoned} {
		f.close(f.task(n, i), reviewed("Two.", flaw("open", 1), flaw("disliked", 3)))
	}
	look(time.Hour)
	for n, action := range map[int]string{merged: "merged", abandoned: "closed"} {
		f.dislike(n, "disliked", "octocat")
		if err := f.hub.ChangePR(t.Context(), repo, n, action, "octocat"); err != nil {
			t.Fatal(err)
		}
	}
	f.hub.Fail(askThreads, githubfake.Failure{Status: 502, Times: 2})
	if err := lookAgain(f); err == nil {
		t.Error("it went well")
	}
	f.wantAcceptance()
	for range 2 {
		look(time.Hour)
		f.wantAcceptance(tasks.Acceptance{Kind: "other", Dismissed: 2, Ignored: 1})
	}
}

// Where GitHub does not say who may write, nobody's 👎 counts, and the review is posted.
func TestOutcomesWithoutPermissions(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.openCode("ten")
	w.close(w.task(n, 0), reviewed("One.", flaw("disliked", 3)))
	w.dislike(n, "disliked", "octocat")
	w.hub.Fail(collaborator, githubfake.Failure{
		Status: 403, Times: -1, Body: `{"message":"Resource not accessible by integration"}`,
	})
	w.close(w.task(n, 1), w.rechecked(n, nil))
	w.wantAcceptance()
	if body := w.hub.Comments(repo, n)[0].Body; !strings.Contains(body, "1 still open") {
		t.Error(body)
	}
}
