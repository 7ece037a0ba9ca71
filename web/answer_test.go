package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	body, err := json.Marshal(tasks.Question{Key: "k", Text: "<b>Which</b> colour?", Options: []string{"red", "blue"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), "k", body); err != nil {
		t.Fatal(err)
	}
	page := h.get("/tasks/" + id).text
	for _, want := range []string{
		"&lt;b&gt;Which&lt;/b&gt; colour?", `name="question" value="k"`,
		`<button name="answer" value="blue">blue</button>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	post := func(path, kind, body string) answer {
		return h.do(http.MethodPost, path, body, "Content-Type", kind)
	}
	api := "/api/tasks/" + id + "/answer"
	for body, want := range map[string]int{
		"no JSON": http.StatusBadRequest, `{"answer":" "}`: http.StatusUnprocessableEntity,
		`{"question":"x","answer":"y"}`: http.StatusNotFound,
	} {
		if a := post(api, "application/json", body); a.StatusCode != want {
			t.Errorf("%s: %s %s", body, a.Status, a.text)
		}
	}
	if a := post("/tasks/"+id+"/answer", "application/x-www-form-urlencoded",
		"question=k&answer=blue"); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the form: %s %s", a.Status, a.text)
	}
	if a := post(api, "application/json", `{"question":"k","answer":"red"}`); a.StatusCode != http.StatusOK ||
		!strings.Contains(a.text, `"text": "blue"`) {
		t.Errorf("a second answer: %s %s", a.Status, a.text)
	}
	h.contains(h.get("/api/audit"), http.StatusOK, `"answer": "blue"`, `!"answer": "red"`)
	h.contains(h.get("/audit?what="+display.TaskID(id), "Accept", "text/html"), http.StatusOK,
		">answered <a href=\"/tasks/"+id+"\">task "+display.TaskID(id)+"</a>: blue</td>")
	if page := h.get("/tasks/" + id).text; strings.Contains(page, "<h2>Question") {
		t.Error("what was answered is still asked")
	}
}
