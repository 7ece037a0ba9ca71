package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// The structured answer of a review is shown as an outline, with its strings as Markdown.
func TestAnswerThatIsAForm(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	form := `{"findings":[{"severity":"major","path":"a.go","line":12,"claim":"It ` + "`leaks`" + `.\n\nEach call opens a file.","suggestion":null},` +
		`{"severity":"minor","claim":"<script>bad()</script>"}],"summary":"Two **things**."}`
	id := h.submit(0)
	h.End(h.Claim(id), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: form, Structured: json.RawMessage(form)}})
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, "<strong>findings:</strong>", "<code>leaks</code>", "<strong>line:</strong> 12", "<p>Each call opens a file.</p>",
		"&lt;script&gt;bad()", "<strong>summary:</strong> Two <strong>things</strong>.")
	if n := strings.Count(page.text, "<ol>\n<li>"); n != 1 {
		t.Errorf("%d lists of findings", n)
	}
}
