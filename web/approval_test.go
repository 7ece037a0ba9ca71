package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// A tool call that a rule leaves to a person is approved by who asked for the task or by an operator, and never by an
// agent.
func TestWhoApproves(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1, func(t *tasks.Task) { t.ID, t.Source, t.Actor = "1700000000000001-chat-x", "chat", "token:author" })
	body, err := json.Marshal(tasks.Question{
		Key: "k", Text: "May I?", Options: []string{tasks.Approve, tasks.Deny}, Consent: "Write",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := h.Claim(id)
	if _, err := c.Ask(t.Context(), "k", body); err != nil {
		t.Fatal(err)
	}
	const button = `<button name="answer" value="Approve">`
	author, other := h.apiToken("author", "user"), h.apiToken("other", "user")
	call := func(key string) answer {
		return h.do(http.MethodPost, "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":
			{"name":"answer","arguments":{"task":%q,"answer":"Approve"}}}`, id), "Authorization", "Bearer "+key,
			"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	}
	approve := func(key string) answer {
		return h.do(http.MethodPost, "/api/tasks/"+id+"/answer", `{"answer":"Approve"}`, "Authorization", "Bearer "+key,
			"Content-Type", "application/json")
	}
	page := func(key string) string {
		return h.do(http.MethodGet, "/tasks/"+id, "", "Authorization", "Bearer "+key).text
	}
	for name, key := range map[string]string{
		"the author's agent": author, "an operator's agent": h.apiToken("boss", "operator"),
	} {
		if a := call(key); a.StatusCode != http.StatusOK || !strings.Contains(a.text, "A person has to decide") {
			t.Errorf("%s: %s %s", name, a.Status, a.text)
		}
	}
	if a := approve(other); a.StatusCode != http.StatusForbidden || strings.Contains(page(other), button) {
		t.Errorf("another user: %s %s", a.Status, a.text)
	}
	if list, err := h.Desk.Questions(t.Context(), id); err != nil || len(list) != 1 || list[0].Answer != nil {
		t.Fatalf("%+v, %v", list, err)
	}
	if !strings.Contains(page(author), button) || !strings.Contains(page(h.apiToken("op", "operator")), button) {
		t.Error("the author or an operator sees no button")
	}
	if a := approve(author); a.StatusCode != http.StatusOK {
		t.Errorf("the author: %s %s", a.Status, a.text)
	}
	if body, err = json.Marshal(tasks.Question{Key: "l", Text: "Again?", Consent: "Write"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), "l", body); err != nil {
		t.Fatal(err)
	}
	if a := approve(h.apiToken("chief", "operator")); a.StatusCode != http.StatusOK {
		t.Errorf("an operator: %s %s", a.Status, a.text)
	}
}
