package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/workspace"
)

// theReviewed is a review of a pull request.
func (c *console) theReviewed() string {
	c.Helper()
	const head = "abc1234567890abcdef1234567890abcdef12345"
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
	answer := findings.Answer{
		Summary: "Rounding is right now. One comparison of floats is **new** and wrong.",
		Findings: []findings.Finding{{
			ID: "floats", Severity: findings.Critical, Confidence: findings.High, Path: "invoice/total.go", Line: 17,
			Side:     findings.Right,
			Claim:    "Two floats are compared with `==`, which is never true for these two.",
			Evidence: "`0.1+0.2` is a constant expression, and exact; `sum` is not. The branch is dead:\n\n- with lines of 0.1 and 0.2, `sum` is 0.30000000000000004.",
			Original: "\tif sum == 0.1+0.2 {", Suggestion: "\tif math.Abs(sum-0.3) < 1e-9 {",
		}},
	}
	c.End(run, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		CostUSD: 0.42, Duration: 2 * time.Minute, Model: "claude-opus-4-8", Structured: raw(answer),
	}})
	var posted findings.Ledger
	key := fmt.Sprintf("%s@%d", id, c.Status(id).Ending.At.UnixMicro())
	posted.Told(key, posted.Settle(findings.Input{Task: key, Head: head, Answer: answer}))
	err := c.Store.Memos.ChangeMemo(c.Context(), "github/acme/payments#41/findings",
		func(json.RawMessage) (json.RawMessage, error) { return raw(posted), nil })
	if err != nil {
		c.Fatal(err)
	}
	return id
}

// The findings of a review are readable in every look.
func TestFindings(t *testing.T) {
	t.Parallel()
	c := newConsole(t, "GITHUB_TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz",
		"GITHUB_WEBHOOK_SECRET=it-is-a-secret-of-the-webhook", "GITHUB_API_URL=http://127.0.0.1:9/",
		"GITHUB_URL=http://127.0.0.1:9")
	id := c.theReviewed()
	for _, l := range looks {
		tb := c.tab(t)
		tb.as(l)
		tb.visit(visit{path: "/tasks/" + id, want: "never true"})
		for _, words := range []string{"critical", "invoice/total.go:17", "math.Abs(sum-0.3)", "Next: push fixes"} {
			tb.shows(words)
		}
		tb.fits("findings")
		tb.accessible("findings")
		tb.keep(fmt.Sprintf("%s/findings-%s.png", out, l.name), tb.shoot(true))
		tb.check()
	}
}
