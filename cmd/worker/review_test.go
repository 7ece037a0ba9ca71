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
			finding("wrong", 1, map[string]any{
				"original": "package total", "claim": "This package is imported nowhere.", "severity": "critical",
			}),
			finding("small", 0, map[string]any{"severity": "minor", "claim": "No test covers Total."}),
		))
	w.model.Answer("Try to refute",
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "Read", Input: map[string]string{"file_path": "total.go"}}}},
		modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: map[string]any{
			"verdicts": []map[string]any{
				{"id": "units", "verdict": "uncertain", "reason": "Its callers are elsewhere, @ann."},
				{"id": "elsewhere", "verdict": "holds", "reason": "It does."},
				{"id": "wrong", "verdict": "refuted", "reason": "main.go imports it, @ann."},
				{"id": "small", "verdict": "refuted", "reason": "Nobody asked."},
			},
		}}}})
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
		posted = append(posted, fmt.Sprintf("at %s:%d by %s, suggestion %t, uncertain %t", c.Path, c.Line, c.User,
			strings.Contains(c.Body, "```suggestion\nvar Total = 100\n```"),
			strings.Contains(c.Body, "**Uncertain** after a second look: Its callers are elsewhere")))
	}
	for _, c := range w.github.Comments(repo, n) {
		posted = append(posted, fmt.Sprintf("comment by %s, summary %t, elsewhere %t, dropped %t, quiet %t", c.User,
			strings.Contains(c.Body, "One problem with the units."), strings.Contains(c.Body, "total.go:40"),
			strings.Contains(c.Body, "1 finding was dropped after a second look, ") &&
				strings.Contains(c.Body, "Dropped: main.go imports it"),
			!strings.Contains(c.Body, "@ann")))
	}
	for _, c := range checks {
		posted = append(posted, fmt.Sprintf("check %s: %s", c.Conclusion, c.Title))
	}
	if diff := cmp.Diff([]string{
		"review COMMENTED by errand[bot]",
		"at total.go:3 by errand[bot], suggestion true, uncertain true",
		"comment by errand[bot], summary true, elsewhere true, dropped true, quiet true",
		"check neutral: 3 new findings",
	}, posted); diff != "" {
		t.Error(diff)
	}
	for _, r := range w.model.Requests() {
		if strings.HasPrefix(r.Text, "Try to refute") && (r.Prompts != 1 || !strings.Contains(r.System, "- id wrong,") ||
			strings.Contains(r.System, "- id small,") || strings.Contains(r.System, "You are the reviewer")) {
			t.Errorf("the second look is not a conversation of its own about three findings: %+v", r)
		}
	}
	w.secretsStayInside()
}
