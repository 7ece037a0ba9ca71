package main

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The agent asks, and the next message of its thread is the answer, through the CLI's own tool call and back.
func TestAgentAsksInChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("paint",
		modelfake.Turn{Tools: []modelfake.ToolCall{{
			Name: "mcp__errand__ask_user", Input: map[string]any{
				"question": "Which colour?", "options": []string{"red", "blue"},
			},
		}}},
		modelfake.Turn{Text: "Painted."})
	base := w.standalone()
	resp, err := http.DefaultClient.Do(w.chatRequest(t.Context(), base, `{"message":"paint","thread":"t1"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"type":"question"`) {
	}
	if !strings.Contains(lines.Text(), `"content":"Which colour?"`) ||
		!strings.Contains(lines.Text(), `"options":["red","blue"]`) {
		t.Fatalf("asked %q, %v", lines.Text(), lines.Err())
	}
	if body := w.chat(t.Context(), base, `{"message":"2","thread":"t1"}`); !strings.Contains(body,
		`"result":"Painted."`) {
		t.Errorf("the reply's stream is that of the task it answers, and was\n%s", body)
	}
	calls := w.model.Requests()
	if last := string(calls[len(calls)-1].Body); len(calls) != 2 || !strings.Contains(last, "answered: blue") {
		t.Errorf("%d calls, the last one %s", len(calls), last)
	}
}
