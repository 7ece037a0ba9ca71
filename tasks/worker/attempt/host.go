package attempt

import (
	"context"

	"github.com/errand-fleet/errand/agent"
)

// host is the worker's side of one run of the agent.
type host struct {
	*mailbox // Next and Idle: messages that are posted in the thread during the run

	record *recorder
	report *pendingReport
	given  *answers
	talk   *talk  // nil if the agent cannot talk with people
	slow   func() // called when the model throttles the run; does not block
}

// Event passes an event to the store and the report without waiting. Only a live report gets ToolInput events; the
// complete input follows.
func (h *host) Event(e agent.Event) {
	if e.Kind != agent.ToolInput {
		h.record.add(e)
	}
	if e.Kind == agent.Taken {
		h.markRead(e.Text)
	}
	h.given.note(e)
	if throttles(e.Class) {
		h.slow()
	}
	h.report.Update(e)
}

// emit passes an event of errand's own to the store and the report without waiting.
func (h *host) emit(e agent.Event) {
	h.record.add(e)
	h.report.Update(e)
}

// Permit asks people for approval, if the agent can talk with them.
func (h *host) Permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	if r.Form != nil && h.talk != nil {
		return h.talk.fill(ctx, r)
	}
	if r.Human { // the CLI's own question tool; errand's is ask_user
		return agent.Decision{Reason: "This tool is not available. Use ask_user, if you have it. Otherwise decide " +
			"yourself and state your assumptions in your answer."}
	}
	if h.talk != nil {
		return h.talk.permit(ctx, r)
	}
	reason := "This needs a person's approval, and no one is available to give it. Continue without it, and say in " +
		"your answer what is left to do."
	if r.Reason != "" {
		reason += " Reason: " + r.Reason
	}
	return agent.Decision{Reason: reason}
}
