package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// asked starts answering a control request of the CLI.
func (l *live) asked(id string, q *wireRequest) {
	l.control.Asked(l.ctx, id, func(ctx context.Context) (any, error) {
		defer l.stream.Touch()
		return l.ask(ctx, q)
	})
}

// ask answers one control request of the CLI.
func (l *live) ask(ctx context.Context, q *wireRequest) (any, error) {
	switch q.Subtype {
	case "can_use_tool":
		r := ToolRequest{ID: q.UseID, Tool: q.Tool, Input: json.RawMessage(q.Input), Blocked: q.Blocked, Human: q.Human}
		return permission(l.decide(ctx, r), r.Input), nil
	case "hook_callback":
		return l.hook(q), nil
	case "mcp_message":
		if q.Server == hostServer && l.tools != nil {
			return l.tools.Answer(ctx, json.RawMessage(q.Message))
		}
	}
	return nil, fmt.Errorf("unsupported control request subtype: %s", q.Subtype)
}

// everyCall has the CLI show us each call before it judges the call itself, as rules need: of what it takes for harmless it does not
// ask (claude-cli.md §7). A call whose hook is not answered in time is not made; ours takes no time.
func everyCall() map[string]any {
	return map[string]any{"PreToolUse": []map[string]any{{
		"matcher": nil, "hookCallbackIds": []string{"route"}, "timeout": time.Hour.Seconds(),
	}}}
}

// hook lets a call go its way, or makes the CLI ask about it. Only the answer to that question, for which the CLI waits without limit,
// denies a call, asks a person or does the call; so none of that happens twice. A refusal of the hook itself the agent would be told as
// an error of the hook. And an answer here that the CLI cannot read would count as consent.
func (l *live) hook(q *wireRequest) any {
	in, err := q.hook()
	r := ToolRequest{ID: in.UseID, Tool: in.Tool, Input: json.RawMessage(in.Input)}
	if err == nil && l.route(r).Action == Allow {
		return map[string]any{}
	}
	return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
}

// delegated begins the result of a call that the host did. It reaches the agent as a refusal of the call, which is the only way in for
// a result that is not the CLI's.
const delegated = "errand has done this call in the tool's place. It was not refused; do not repeat it. Its result:\n\n"

// route asks the policy, and holds an agent that plans to looking: in that mode the CLI asks, too, and would do what it is allowed.
func (l *live) route(r ToolRequest) Verdict {
	v := l.policy.Route(r)
	if l.planning.Load() && v.Action != Deny && !r.Human && !catalog[r.Tool].harmless() {
		return Verdict{Action: Deny, Reason: "This is a plan: change nothing, and say what you would do."}
	}
	return v
}

// decide routes a call. It waits for whoever has to decide it, or does it.
func (l *live) decide(ctx context.Context, r ToolRequest) Decision {
	redact := l.r.cfg.Redactor
	r.Text = describe(redact, l.spec.Dir, r.Tool, r.Input)
	v := l.route(r)
	switch v.Action {
	case Allow:
		return Decision{Allow: true}
	case Ask:
		r.Reason = v.Reason
		return l.host.Permit(ctx, r)
	case Delegate:
		result, err := v.Run(ctx, r)
		if err != nil {
			return Decision{Reason: redact.String("errand tried to do this call in the tool's place, and failed: " + err.Error())}
		}
		return Decision{Reason: delegated + redact.String(result)}
	default:
		return Decision{Reason: v.Reason}
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
