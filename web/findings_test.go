package web

import (
	"context"
	"encoding/json"
	"errors"
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

func (r *reviewer) Reported(t tasks.Task, _ tasks.Ending) *tasks.ReviewResult {
	if r.result == nil || string(t.Origin) != r.origin {
		return nil
	}
	return &tasks.ReviewResult{Head: r.result.Head, URL: r.result.URL, Reported: r.result.Reported}
}

func (r *reviewer) Result(context.Context, tasks.Task, tasks.Ending) (*tasks.ReviewResult, error) {
	return r.result, r.err
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

// A review is shown in its own words, with what to do next, in place of the JSON that the agent answered with.
func TestFindings(t *testing.T) {
	t.Parallel()
	source := &reviewer{origin: `{"pull":7}`, result: &tasks.ReviewResult{
		Head: "abc1234", URL: "https://hub.example/acme/api/pull/7", Reported: 2, Waits: true,
		Text: "Two **problems**.\n\n**critical** [`a.go:5`](https://hub.example/acme/api/blob/abc/a.go#L5): It is a `string`. <script>",
	}}
	h := newHarness(t, func(c *Config) { c.Reviews = map[string]tasks.Reviewer{"test": source} })
	id := h.submit(1, func(t *tasks.Task) { t.Origin = json.RawMessage(source.origin) })
	c := h.Claim(id)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "!problems")
	changes := changesOf(goFile)
	changes.Head = "abc1234"
	h.changed(c, changes)
	e := tasks.Ending{Kind: tasks.Answered}
	e.Result.Structured = []byte(`{"findings": [], "summary": "as JSON"}`)
	h.End(c, e)
	h.contains(h.get("/"), http.StatusOK, `<a href="https://hub.example/acme/api/pull/7">2 findings in abc1234</a></p>`)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "Two <strong>problems</strong>.", "<code>string</code>",
		`<a href="https://hub.example/acme/api/blob/abc/a.go#L5"`, "!<script>alert", "Next: push fixes, or comment /fix",
		"Reviewed change", "!as JSON")
	h.contains(h.get("/api/tasks/"+id), http.StatusOK, `"review": "Two **problems**.`, `"summary": "as JSON"`, `!"pull"`)
	h.contains(h.get("/api/tasks"), http.StatusOK, `"summary": "as JSON"`, `!"review":`)
	sent, err := Task(t.Context(), h.Status(id), map[string]tasks.Reviewer{"test": source}) // of webhooks
	if body, _ := json.Marshal(sent); err != nil || !strings.Contains(string(body), `"review":"Two`) {
		t.Errorf("%s, %v", body, err)
	}
	source.result.Waits, source.result.Reported = false, 0
	h.contains(h.get("/tasks/"+id), http.StatusOK, "Two <strong>problems</strong>.", "!Next: push")
	h.contains(h.get("/"), http.StatusOK, "0 findings in abc1234")
	source.err = errors.New("it cannot be read")
	h.contains(h.get("/api/tasks/"+id), http.StatusServiceUnavailable)
}
