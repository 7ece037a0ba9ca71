package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// theReviewed is the second review of a pull request, with the ledger of both.
func (c *console) theReviewed() string {
	c.Helper()
	const head, before = "abc1234567890abcdef1234567890abcdef12345", "def5678901234567890abcdef1234567890abcde"
	id := c.submit(func(t *tasks.Task) {
		t.Source, t.Kind, t.Class, t.Actor, t.Repo, t.Profile =
			"github", "review", tasks.Review, "dana", "acme/payments", agent.Read
		t.Prompt = "Review pull request acme/payments#41: Round totals instead of truncating them"
		t.Origin = raw(map[string]any{
			"repo": "acme/payments", "number": 41, "head": head,
			"html_url": "https://github.example/acme/payments/pull/41",
		})
	})
	run := c.Claim(id)
	changes := tasks.NewChanges(workspace.Comparison{Files: []workspace.FileChange{{
		Name: "invoice/total.go", Kind: "M",
		Added: 3, Removed: 1, Patch: "diff --git a/x b/x\n" +
			"@@ -12,4 +15,6 @@ func Total(lines []float64) int {\n \t\tsum += l\n \t}\n-\treturn int(sum * 100)\n+\tif sum == 0.1+0.2 {\n+\t\tsum = 0.3 // see the ledger\n+\t}\n \treturn int(math.Round(sum * 100))\n }\n",
	}}}, strings.Clone)
	changes.Head = head
	if err := run.SaveLatest(c.Context(), tasks.DiffLog, changes.Encode()); err != nil {
		c.Fatal(err)
	}
	known := func(id, severity, status, first, last string, line int, claim string) map[string]any {
		return map[string]any{
			"id": id, "severity": severity, "status": status, "first": first, "last": last, "path": "invoice/total.go",
			"line": line, "side": "RIGHT", "claim": claim,
		}
	}
	ledger := raw(map[string]any{"reviewed": head, "known": []any{
		known("0a0a0a0a0a0a", "critical", "open", head, head, 17,
			"Two floats are compared with `==`, which is never true for these two."),
		known("0b0b0b0b0b0b", "minor", "open", before, head, 19, "The number 100 has no name."),
		known("0c0c0c0c0c0c", "major", "fixed", before, head, 0, "A total of 0.29 is truncated to 28 cents."),
		known("0d0d0d0d0d0d", "minor", "dismissed", before, before, 0,
			"The package has no documentation, although it is imported by a-package-with-a-long-name/that/goes/on/and/on/and/on."),
	}})
	err := c.Store.Memos.ChangeMemo(c.Context(), "github/acme/payments#41/findings",
		func(json.RawMessage) (json.RawMessage, error) { return ledger, nil })
	if err != nil {
		c.Fatal(err)
	}
	c.End(run, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		CostUSD: 0.42, Duration: 2 * time.Minute, Model: "claude-opus-4-8", Structured: raw(map[string]any{
			"summary": "Rounding is right now. One comparison of floats is **new** and wrong.",
			"findings": []any{map[string]any{
				"id": "floats", "severity": "critical", "confidence": "high", "path": "invoice/total.go", "line": 17,
				"side":     "RIGHT",
				"claim":    "Two floats are compared with `==`, which is never true for these two.",
				"evidence": "`0.1+0.2` is a constant expression, and exact; `sum` is not. The branch is dead:\n\n- with lines of 0.1 and 0.2, `sum` is 0.30000000000000004.",
				"original": "\tif sum == 0.1+0.2 {", "suggestion": "\tif math.Abs(sum-0.3) < 1e-9 {",
			}},
		}),
	}})
	return id
}

// The findings of a review are readable in every look, with their lines and with what became of the earlier ones.
func TestFindings(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "GITHUB_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz",
		"GITHUB_WEBHOOK_SECRET=it-is-a-secret-of-the-webhook", "GITHUB_API_URL=http://127.0.0.1:9/")
	id := c.theReviewed()
	for _, l := range looks {
		tb := c.tab(t)
		tb.as(l)
		tb.visit(visit{path: "/tasks/" + id, want: "never true"})
		for _, words := range []string{
			"1 critical", "new", "still open, found at def5678", "fixed at abc1234, found at def5678",
			"if sum == 0.1+0.2", "invoice/total.go:17",
		} {
			tb.shows(words)
		}
		tb.fits("findings")
		tb.accessible("findings")
		tb.keep(fmt.Sprintf("%s/findings-%s.png", out, l.name), tb.shoot(true))
		tb.check()
	}
}
