package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/tools"
)

// answer answers one control request of the CLI.
func (l *liveRun) answer(ctx context.Context, q *protocol.Request) (any, error) {
	switch q.Subtype {
	case "can_use_tool":
		r := ToolRequest{ID: q.UseID, Tool: q.Tool, Input: json.RawMessage(q.Input), Blocked: q.Blocked, Human: q.Human}
		return permission(l.decide(ctx, r), r.Input), nil
	case "hook_callback":
		in, err := q.Hook()
		switch {
		case err == nil && in.Event == protocol.SkillShell:
			return l.skillShell(ctx, in), nil
		case err == nil && slices.Contains(instructing, in.Event):
			return l.instructor.answer(ctx, in), nil
		}
		return l.hook(in, err == nil), nil
	case "elicitation":
		return l.elicit(ctx, q), nil
	case "mcp_message":
		if q.Server == tools.ServerName && l.tools != nil {
			return l.tools.Answer(ctx, json.RawMessage(q.Message))
		}
	}
	return nil, fmt.Errorf("unsupported control request subtype: %s", q.Subtype)
}

// elicit lets a person answer a question of an MCP server. A question without an answer is declined.
func (l *liveRun) elicit(ctx context.Context, q *protocol.Request) any {
	form := &tools.Form{URL: q.URL, Schema: json.RawMessage(q.Schema), Fields: q.Order}
	_ = json.Unmarshal(q.Message, &form.Message) // a question without a text is still one
	d := l.host.Permit(ctx, ToolRequest{Tool: "mcp__" + q.Asker, Human: true, Form: form})
	if !d.Allow {
		return map[string]any{"action": "decline"}
	}
	answer := map[string]any{"action": "accept"}
	if d.Input != nil {
		answer["content"] = d.Input
	}
	return answer
}

// hooks are those of the instructions, and what the CLI submits to hook. It always submits the shell commands in the
// text of skills and commands, which it executes while it loads that text, without asking. With rules it also submits
// each call of a tool before it judges the call itself: it does not ask about calls that it takes for harmless. It
// executes nothing whose hook is not answered in time (CLI 2.1.332).
func (l *liveRun) hooks() map[string]any {
	submit := []map[string]any{{
		"matcher": nil, "hookCallbackIds": []string{"route"}, "timeout": time.Hour.Seconds(),
	}}
	hooks := l.instructor.hooks()
	hooks[protocol.SkillShell] = submit
	if len(l.spec.Rules) > 0 {
		hooks["PreToolUse"] = submit
	}
	return hooks
}

// announce reports a shell command in the text of a skill or command, because the CLI does not report it.
func (h streamHandler) announce(in protocol.HookInput) {
	words := tools.Describe(h.redactor, h.spec.Dir, in.Tool, json.RawMessage(in.Input))
	text := h.redactor.OneLine("The text of /" + in.Command + " asks for a command: " + words)
	h.log.Note(time.Now(), "! %s", text)
	h.host.Event(Event{Time: time.Now(), Kind: Notice, Text: text})
}

// skillShell decides a shell command in the text of a skill or command as if the agent had called the tool.
func (l *liveRun) skillShell(ctx context.Context, in protocol.HookInput) any {
	answer := map[string]any{"hookEventName": protocol.SkillShell, "permissionDecision": "allow"}
	d := l.decide(ctx, ToolRequest{ID: in.UseID, Tool: in.Tool, Input: json.RawMessage(in.Input)})
	if !d.Allow {
		answer["permissionDecision"], answer["permissionDecisionReason"] = "deny", cmp.Or(d.Reason, notAllowed)
		l.log.Note(time.Now(), "! not executed: %s", answer["permissionDecisionReason"])
	}
	return map[string]any{"hookSpecificOutput": answer}
}

// hook lets a call pass, or makes the CLI ask about it. Only the answer to that question, for which the CLI waits
// without limit, denies a call, asks a person or makes the call, so that none of that happens twice. The agent would
// see a refusal by the hook itself as an error of the hook, and the CLI would take an answer that it cannot read for
// consent.
func (l *liveRun) hook(in protocol.HookInput, readable bool) any {
	r := ToolRequest{ID: in.UseID, Tool: in.Tool, Input: json.RawMessage(in.Input)}
	if readable && l.route(r).Action == Allow {
		return map[string]any{}
	}
	return map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": "ask",
	}}
}

// route asks the policy. While the agent plans, it denies every call that may change something: in that mode the CLI
// asks too, and would make the calls that are allowed.
func (l *liveRun) route(r ToolRequest) tools.Verdict {
	v := l.policy.Route(r)
	if l.planning.Load() && v.Action != Deny && !r.Human && !tools.Harmless(r.Tool) {
		return tools.Verdict{Action: Deny, Reason: "This is a plan: change nothing, and say what you would do."}
	}
	return v
}

// decide routes a call. It waits for the host's decision, or makes a delegated call.
func (l *liveRun) decide(ctx context.Context, r ToolRequest) Decision {
	r.Text = tools.Describe(l.redactor, l.spec.Dir, r.Tool, r.Input)
	told := l.r.cfg.Redactor // of what the agent reads
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
			reason := "errand tried to make this call in place of the tool, and failed: " + err.Error()
			return Decision{Reason: told.String(reason)}
		}
		return Decision{Reason: protocol.DelegatedResult + told.String(result)}
	default:
		return Decision{Reason: v.Reason}
	}
}

// notAllowed is what the agent is told if nobody gave a reason.
const notAllowed = "This is not allowed here."

// permission returns the answer to can_use_tool. A denial needs a message, and CLI 2.1.197 took an allowance without
// the input for a denial (CLI 2.1.329).
func permission(d Decision, asked json.RawMessage) any {
	if !d.Allow {
		return map[string]any{"behavior": "deny", "message": cmp.Or(d.Reason, notAllowed)}
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
