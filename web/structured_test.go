package web

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A structured answer is shown as indented JSON, in which nothing is Markdown or HTML.
func TestAnswerThatIsAForm(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	form := `{"findings":[{"severity":"major","path":"a.go","line":12,"claim":"It ` + "`leaks`" +
		`.\n\nEach call opens a file.","suggestion":null},` +
		`{"severity":"minor","claim":"<script>bad()</script>"}],"summary":"Two **things**."}`
	id := h.submit(0)
	h.End(h.Claim(id), tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Text: form, Structured: json.RawMessage(form)},
	})
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, "<pre>", "findings", "It `leaks`", "Two **things**.", "!<script>bad()",
		"!<strong>things")
}
