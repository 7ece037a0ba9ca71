package agent

import (
	"context"
	"encoding/json"
	"fmt"
)

// ask answers one control request of the CLI.
func ask(ctx context.Context, r *wireRequest, h Host) (any, error) {
	if r.Subtype != "can_use_tool" {
		return nil, fmt.Errorf("unsupported control request subtype: %s", r.Subtype)
	}
	d := h.Permit(ctx, ToolRequest{
		ID: r.UseID, Tool: r.Tool, Input: json.RawMessage(r.Input), Blocked: r.Blocked, Human: r.Human,
	})
	return permission(d, json.RawMessage(r.Input)), nil
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
