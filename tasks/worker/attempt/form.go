package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Answers to a question of an MCP server that needs no text.
const (
	formDone    = "Done"
	formDecline = "Decline"
)

// formField is a property of a form's schema: a text, a number, a choice, or yes or no.
type formField struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Enum        []string `json:"enum"`
}

// fill asks people what an MCP server wants to know: one question for each field of its form. Every answer but the last
// one counts only with the others.
func (k *talk) fill(ctx context.Context, r agent.ToolRequest) agent.Decision {
	var schema struct {
		Properties map[string]formField `json:"properties"`
	}
	if len(r.Form.Schema) > 0 && json.Unmarshal(r.Form.Schema, &schema) != nil {
		return agent.Decision{Reason: "The form cannot be read."}
	}
	asks := "The MCP server " + strings.TrimPrefix(r.Tool, "mcp__") + " asks: " + r.Form.Message
	if len(r.Form.Fields) == 0 {
		if r.Form.URL != "" {
			asks += "\n\nOpen this address only if you trust it:\n" + fenced(r.Form.URL)
		}
		a, err := k.ask(ctx, tasks.Question{Text: asks, Options: []string{formDone, formDecline}})
		return agent.Decision{Allow: err == nil && a.Text == formDone}
	}
	filled := map[string]any{}
	for _, name := range r.Form.Fields {
		f := schema.Properties[name]
		what := strings.TrimSpace(cmp.Or(f.Title, name) + ". " + f.Description)
		a, err := k.ask(ctx, tasks.Question{Text: asks + "\n\n" + what, Options: append(f.options(), formDecline)})
		if err != nil || a.Expired || a.Text == formDecline {
			return agent.Decision{Reason: "Nobody answered."}
		}
		value, err := f.value(a.Text)
		if err != nil {
			return agent.Decision{Reason: fmt.Sprintf("The answer for %s is no %s.", name, f.Type)}
		}
		filled[name] = value
	}
	input, err := json.Marshal(filled)
	if err != nil {
		return agent.Decision{Reason: "The answers cannot be sent: " + err.Error()}
	}
	return agent.Decision{Allow: true, Input: input}
}

// options are the answers that a field offers.
func (f formField) options() []string {
	if f.Type == "boolean" {
		return []string{"Yes", "No"}
	}
	return f.Enum[:min(len(f.Enum), 4):min(len(f.Enum), 4)]
}

// value returns an answer in the type of its field.
func (f formField) value(answer string) (any, error) {
	answer = strings.TrimSpace(answer)
	switch f.Type {
	case "boolean":
		return strconv.ParseBool(strings.NewReplacer("yes", "true", "no", "false").Replace(strings.ToLower(answer)))
	case "integer":
		return strconv.ParseInt(answer, 10, 64)
	case "number":
		n, err := strconv.ParseFloat(answer, 64)
		if math.IsNaN(n) || math.IsInf(n, 0) { // JSON has no such number
			return nil, strconv.ErrRange
		}
		return n, err
	}
	return answer, nil
}
