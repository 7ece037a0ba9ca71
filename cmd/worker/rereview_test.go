package main

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/tasks/github/findings"
)

// The review of a further push starts at the new commits: the agent gets them as a file, and the open findings in the
// prompt. A finding that it reports as fixed is marked as fixed at its place and its thread is resolved. No finding is
// posted twice.
func TestReReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asApp()
	give := func(answer map[string]any) {
		w.model.Answer("Review pull request", modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "StructuredOutput", Input: answer,
		}}})
	}
	finding := map[string]any{
		"id": "units", "severity": "major", "confidence": "high", "path": "total.go", "line": 3,
		"claim": "This adds cents to euros.", "evidence": "Total is in cents.",
	}
	give(map[string]any{"summary": "One problem.", "findings": []any{finding}})
	w.standalone()
	n, err := w.github.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Base: "main", Head: "fix-total", Title: "Fix the total", User: "ann",
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.checked(w.github.Pulls(repo)[0].HeadSHA)
	first := w.github.Threads(repo, n)
	if len(first) != 1 {
		t.Fatalf("threads: %+v", first)
	}
	id, _ := findings.FindingOf(first[0].Comments[0].Body)
	before := len(w.model.Requests())

	give(map[string]any{
		"summary": "Mended.", "findings": []any{}, "earlier": []any{map[string]any{"id": id, "status": "fixed"}},
	})
	head, err := w.github.PushPR(t.Context(), repo, n,
		map[string]string{"total.go": "package total\n\nvar Total = 100\n"})
	if err != nil {
		t.Fatal(err)
	}
	w.checked(head)
	told := false
	for _, r := range w.model.Requests()[before:] {
		told = told || strings.Contains(r.System, "since.diff") && strings.Contains(r.System, "id "+id)
	}
	if !told {
		t.Error("the agent did not get the new commits or the open findings")
	}
	threads := w.github.Threads(repo, n)
	if len(threads) != 1 || threads[0].ResolvedBy != "errand[bot]" || len(threads[0].Comments) != 2 ||
		!strings.Contains(threads[0].Comments[1].Body, "Fixed in "+head[:7]) {
		t.Errorf("threads: %+v", threads)
	}
	if got := len(w.github.Reviews(repo, n)); got != 1 {
		t.Errorf("%d reviews", got)
	}
	w.secretsStayInside()
}

// checked waits until the check of a commit has ended.
func (w *world) checked(sha string) {
	w.Helper()
	ctx := await.Context(w)
	if err := w.github.Wait(ctx, func(s *githubfake.Server) bool {
		checks := s.CheckRuns(repo, sha)
		return len(checks) > 0 && checks[0].Status == "completed"
	}); err != nil {
		w.Fatalf("wait for the check of %s: %v", sha, err)
	}
}
