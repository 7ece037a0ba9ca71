package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
)

// A question of an MCP server goes to people, field by field, and what they answer has the types that it asked for.
func TestFormOfAServer(t *testing.T) {
	t.Parallel()
	numbers := agent.Form{
		Message: "How much?", Fields: []string{"share"}, Schema: []byte(`{"properties":{"share":{"type":"number"}}}`),
	}
	for name, c := range map[string]struct {
		form    agent.Form
		answers []string
		want    string
	}{
		"fields": {agent.Form{
			Message: "Where?", Fields: []string{"branch", "times", "really"},
			Schema: []byte(`{"properties":{"branch":{"type":"string","enum":["main","dev"]},
				"times":{"type":"integer"},"really":{"type":"boolean"}}}`),
		}, []string{"main", "3", "Yes"}, `true {"branch":"main","really":true,"times":3}`},
		"declined": {agent.Form{
			Message: "Where?", Fields: []string{"branch", "times"},
			Schema: []byte(`{"properties":{"branch":{"type":"string"},"times":{"type":"integer"}}}`),
		}, []string{"main", "Decline"}, "false"},
		"no number": {agent.Form{
			Message: "Where?", Fields: []string{"times"}, Schema: []byte(`{"properties":{"times":{"type":"integer"}}}`),
		}, []string{"often"}, "false"},
		"not a number":    {numbers, []string{"NaN"}, "false"},
		"infinite":        {numbers, []string{"-Inf"}, "false"},
		"too large":       {numbers, []string{"1e400"}, "false"},
		"a number":        {numbers, []string{"-1.5e2"}, `true {"share":-150}`},
		"address":         {agent.Form{Message: "Log in.", URL: "https://a.example/x"}, []string{"Done"}, "true"},
		"another address": {agent.Form{Message: "Log in.", URL: "https://a.example/x"}, []string{"what?"}, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := talking(t, nil)
			f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
				d := h.Permit(ctx, agent.ToolRequest{Tool: "mcp__tracker", Human: true, Form: &c.form})
				return answer(strings.TrimSpace(fmt.Sprintf("%t %s", d.Allow, d.Input))), nil
			}
			f.talker(s)
			id := f.submit(f.task("a", "ask"))
			for _, text := range c.answers {
				if q := <-s.asked; q.Options[len(q.Options)-1] != "Decline" {
					t.Errorf("asked %+v", q)
				}
				if _, err := f.desk.Answer(t.Context(), id, "", "ann", text); err != nil {
					t.Fatal(err)
				}
			}
			if got := f.ending(id).Result.Text; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
