package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// reviewer is a source with one review, of the task with its origin.
type reviewer struct {
	origin string
	result *tasks.ReviewResult
	err    error
}

func (r *reviewer) Review(_ context.Context, t tasks.Task, _ tasks.Ending) (*tasks.ReviewResult, error) {
	if string(t.Origin) != r.origin {
		return nil, fmt.Errorf("the origin is %q", t.Origin)
	}
	return r.result, r.err
}

func (r *reviewer) Reported(t tasks.Task, _ tasks.Ending) (*tasks.ReviewResult, error) {
	if string(t.Origin) != r.origin {
		return nil, fmt.Errorf("the origin is %q", t.Origin)
	}
	return r.result, nil
}

func (r *reviewer) Acceptance(_ context.Context, repo string) ([]tasks.Acceptance, error) {
	if repo != "acme/api" {
		return nil, r.err
	}
	return []tasks.Acceptance{{Kind: "tests", Fixed: 41, Dismissed: 3, Ignored: 2}}, r.err
}

// The API shows what people did with the findings there.
func TestAcceptance(t *testing.T) {
	t.Parallel()
	source := &reviewer{}
	h := newHarness(t, func(c *Config) { c.Reviews = map[string]tasks.Reviewer{"test": source} })
	h.contains(h.get("/api/findings?repository=acme/api"), http.StatusOK, `"kind": "tests"`, `"fixed": 41`,
		`"dismissed": 3`, `"ignored": 2`)
	h.contains(h.get("/api/findings?repository=acme/web"), http.StatusOK, `"kinds": []`)
	h.contains(h.get("/api/findings"), http.StatusBadRequest, "repository must be")
	for repositories, want := range map[string]string{"acme/*": `"kind": "tests"`, "other/*": `"kinds": []`} {
		key := []string{"Authorization", "Bearer " + h.apiToken(strings.TrimSuffix(repositories, "/*"),
			"viewer", repositories)}
		h.contains(h.get("/api/findings?repository=acme/api", key...), http.StatusOK, want)
	}
	source.err = errors.New("the counts cannot be read")
	h.contains(h.get("/api/findings?repository=acme/api"), http.StatusServiceUnavailable)
}

func TestFindings(t *testing.T) {
	t.Parallel()
	source := &reviewer{origin: `{"pull":7}`, result: &tasks.ReviewResult{
		Head: "abc1234", URL: "https://hub.example/acme/api/pull/7", Summary: "Two **problems**.", Reported: 2,
		Findings: []tasks.Finding{
			{
				ID: "a1", Severity: "critical", Status: "open", New: true, Here: true, First: "abc1234",
				Last: "abc1234", Path: "invoice/total.go", Line: 6, StartLine: 5,
				Claim: "It is a `string`. <script>", Evidence: "- one\n- two", Suggestion: "return <1>",
				URL: "https://hub.example/acme/api/pull/7#discussion_r1",
			},
			{
				ID: "b2", Severity: "minor", Status: "open", Here: true, First: "def5678", Last: "abc1234",
				Path: "invoice/total.go", Line: 5, Removed: true, Answered: true, Claim: "Old.",
			},
			{
				ID: "c3", Severity: "major", Status: "fixed", Here: true, First: "def5678", Last: "abc1234",
				Path: "x\u202e.go", Claim: "Gone.",
			},
			{
				ID: "d4", Severity: "major", Status: "open", New: true, Here: true, First: "abc1234", Path: "far.go",
				Line: 70, Original: "as it is\nand was", Claim: "Far.",
			},
		},
	}}
	h := newHarness(t, func(c *Config) { c.Reviews = map[string]tasks.Reviewer{"test": source} })
	id := h.submit(1, func(t *tasks.Task) { t.Origin = json.RawMessage(source.origin) })
	c := h.Claim(id)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "!Review of")
	changes := changesOf(goFile)
	changes.Head = "abc1234"
	h.changed(c, changes)
	e := tasks.Ending{Kind: tasks.Answered}
	e.Result.Structured = []byte(`{"findings": [], "summary": "as JSON"}`)
	h.End(c, e)
	h.contains(h.get("/"), http.StatusOK, `<a href="https://hub.example/acme/api/pull/7">2 findings in abc1234</a></p>`)
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK,
		"Review of abc1234", "Two <strong>problems</strong>.", "3 open: 1 critical, 1 major, 1 minor", "1 settled",
		"Reviewed change", "!as JSON", "!<h2>Answer",
		`<a href="https://hub.example/acme/api/pull/7#discussion_r1">invoice/total.go:5–6</a>`, "<code>string</code>",
		"<li>one", "return &lt;1&gt;", "!<script>alert",
		`id="at-a1-L5" class="add mark"`, `id="at-b2-O5" class="del mark"`, `id="at-d4-L71" class="mark"`, "and was",
		"<span>new</span>", "Next: push fixes, or comment /fix", "!errand remembers",
		"still open, found at def5678, answered", "fixed at abc1234, found at def5678", `x\u202e.go`)
	if page.text = page.text[strings.Index(page.text, `id="finding-a1"`):]; strings.Index(page.text,
		`id="finding-d4"`) > strings.Index(page.text, `id="finding-b2"`) {
		t.Error("an earlier finding comes before a new one")
	}
	source.err = errors.New("the ledger cannot be read")
	h.contains(h.get("/tasks/"+id), http.StatusOK, "as JSON", "!Review of")
	h.contains(h.get("/"), http.StatusOK, "2 findings in abc1234") // the list reads no ledger
}
