package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// ask answers one control request of the CLI.
func (l *live) ask(ctx context.Context, r *wireRequest) (any, error) {
	switch {
	case r.Subtype == "can_use_tool":
		d := l.host.Permit(ctx, ToolRequest{
			ID: r.UseID, Tool: r.Tool, Input: json.RawMessage(r.Input), Blocked: r.Blocked, Human: r.Human,
		})
		return permission(d, json.RawMessage(r.Input)), nil
	case r.Subtype == "mcp_message" && r.Server == hostServer && l.tools != nil:
		return l.tools.Answer(ctx, json.RawMessage(r.Message))
	default:
		return nil, fmt.Errorf("unsupported control request subtype: %s", r.Subtype)
	}
}

// permission is the answer to can_use_tool. A denial without a message is invalid, and an allowance without the input was taken
// for a denial by CLI 2.1.197 (claude-cli.md §7).
func permission(d Decision, asked json.RawMessage) any {
	if !d.Allow {
		reason := d.Reason
		if reason == "" {
			reason = "This is not allowed here."
		}
		return map[string]any{"behavior": "deny", "message": reason}
	}
	input := d.Input
	if input == nil {
		input = asked
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return map[string]any{"behavior": "allow", "updatedInput": input}
}
