package chat

import (
	"io"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/openapi"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// The stream and the refusals match the API's description.
func TestChatIsAsDescribed(t *testing.T) {
	t.Parallel()
	d, err := openapi.Load("../../web/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, Config{})
	for name, tc := range map[string]struct {
		body string
		end  *tasks.Ending
	}{
		"refused": {`{"message":""}`, nil},
		"answered": {`{"message":"Hi"}`, &tasks.Ending{
			Kind: tasks.Answered, Result: agent.Result{Text: "42", CostUSD: 0.1},
		}},
		"failed": {`{"message":"Hi"}`, &tasks.Ending{Kind: tasks.Failed, Result: agent.Result{Partial: "4"}}},
	} {
		resp := h.post(tc.body)
		if tc.end != nil {
			all, err := h.Desk.List(t.Context(), desk.Filter{State: "waiting", Limit: 1})
			if err != nil || len(all.Tasks) != 1 {
				t.Fatalf("%s: %v, %v", name, all, err)
			}
			c := h.Claim(all.Tasks[0].Task.ID)
			h.Append(c,
				agent.Event{Kind: agent.Text, Text: "4"}, agent.Event{Kind: agent.ToolUse, Tool: "Bash", Text: "$ ls"},
				agent.Event{Kind: tasks.Said, Text: "Soon"}, agent.Event{Kind: tasks.Replied, Text: "red"},
				agent.Event{Kind: tasks.Absorbed, Text: "and"},
				agent.Event{
					Kind: tasks.Asked, Text: "Which?",
					Input: h.JSON(tasks.Question{Key: "k", Options: []string{"red"}}),
				},
			)
			h.End(c, *tc.end)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil {
			err = d.Check(resp, body)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
