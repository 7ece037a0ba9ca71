package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The CLI returns findings by its structured output tool, and they become one review with a comment at each line, one
// summary comment and one check run. The CLI itself enforces the schema: it never accepts other output.
func TestReviewWithFindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asApp()
	finding := func(id string, line int, more map[string]any) map[string]any {
		f := map[string]any{
			"id": id, "severity": "major", "confidence": "high", "path": "total.go", "line": line,
			"original": "", "claim": "This adds cents to euros, @ann.", "evidence": "Total is in cents.",
		}
		maps.Copy(f, more)
		return f
	}
	give := func(findings ...map[string]any) modelfake.Turn {
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: map[string]any{
			"summary": "One problem with the units.", "findings": findings,
		}}}}
	}
	w.model.Answer("Review pull request",
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Glob", Input: map[string]string{"pattern": "*.go"}}}},
		give(finding("units", 3, map[string]any{"severity": "terrible"})), // which the CLI refuses
		give(
			finding("units", 3, map[string]any{"original": "var Total = 1", "suggestion": "var Total = 100"}),
			finding("elsewhere", 40, nil),
		))
	w.standalone()
	n, err := w.github.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Base: "main", Head: "fix-total", Title: "Fix the total", User: "ann",
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	head := w.github.Pulls(repo)[0].HeadSHA
	ctx := await.Context(t)
	var checks []githubfake.CheckRun
	if err := w.github.Wait(ctx, func(s *githubfake.Server) bool {
		checks = s.CheckRuns(repo, head)
		return len(checks) > 0 && checks[0].Status == "completed"
	}); err != nil {
		t.Fatalf("wait for the review: %v; checks %+v", err, checks)
	}

	var posted []string
	for _, v := range w.github.Reviews(repo, n) {
		posted = append(posted, fmt.Sprintf("review %s by %s", v.State, v.User))
	}
	for _, c := range w.github.ReviewComments(repo, n) {
		posted = append(posted, fmt.Sprintf("at %s:%d by %s, suggestion %t", c.Path, c.Line, c.User,
			strings.Contains(c.Body, "```suggestion\nvar Total = 100\n```")))
	}
	for _, c := range w.github.Comments(repo, n) {
		posted = append(posted, fmt.Sprintf("comment by %s, summary %t, elsewhere %t, quiet %t", c.User,
			strings.Contains(c.Body, "One problem with the units."), strings.Contains(c.Body, "total.go:40"),
			!strings.Contains(c.Body, "@ann")))
	}
	for _, c := range checks {
		posted = append(posted, fmt.Sprintf("check %s: %s", c.Conclusion, c.Title))
	}
	if diff := cmp.Diff([]string{
		"review COMMENTED by errand[bot]",
		"at total.go:3 by errand[bot], suggestion true",
		"comment by errand[bot], summary true, elsewhere true, quiet true",
		"check neutral: 2 new findings",
	}, posted); diff != "" {
		t.Error(diff)
	}
	w.secretsStayInside()
}
