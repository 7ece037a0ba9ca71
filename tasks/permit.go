package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// The answers that are offered to a question of consent. Others will do as well: see permit.
const (
	Approve = "Approve"
	Always  = "Always for this task"
	Deny    = "Deny"
)

// maxCall is how much of a call's input people are shown; they cannot judge more.
const maxCall = 6 << 10

// What people may say to a call, in whatever case.
var (
	consent = []string{"approve", "approved", "allow", "yes", "y", "ok", "okay"}
	dissent = []string{"deny", "no", "n"}
)

// Denial is the answer that refuses a call for a reason, whatever words that has.
func Denial(reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return Deny
	}
	return Deny + ": " + reason
}

// permit asks people whether the agent may do something. They see the whole of it, or are not asked.
func (k *talk) permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	var input bytes.Buffer
	if json.Indent(&input, r.Input, "", "  ") != nil || input.Len() > maxCall {
		return agent.Decision{Reason: "This needs a person's approval, and is too long for one to judge. Do it in smaller steps."}
	}
	what := r.Tool
	if r.Reason != "" {
		what += " (" + r.Reason + ")"
	}
	a, err := k.ask(ctx, Question{
		Text: "May I do this? " + what + "\n\n" + fenced(input.String()), Options: []string{Approve, Always, Deny}, Consent: what,
	})
	said := strings.ToLower(strings.TrimRight(a.Text, ".! "))
	switch {
	case err != nil:
		return agent.Decision{Reason: "Nobody could be asked for approval: " + err.Error()}
	case a.Expired:
		return agent.Decision{Reason: "Nobody approved of this in time. Go on without it, and say in your answer what is left to do."}
	case a.Text == Always, slices.Contains(consent, said):
		return agent.Decision{Allow: true}
	case slices.Contains(dissent, said):
		return agent.Decision{Reason: a.By + " does not approve of this."}
	default:
		return agent.Decision{Reason: a.By + " does not approve of this: " + strings.TrimPrefix(a.Text, Deny+": ")}
	}
}

// consented finds a consent that was given for all of the task, in this run or an earlier one: to calls of the same tool that people are
// asked about for the same reason. The store's questions are what remembers it, so it ends with them, when the task is tried again.
func (k *talk) consented(ctx context.Context, to string) (Answer, bool, error) {
	stored, err := k.store.Questions.List(ctx, k.task.ID)
	if err != nil {
		return Answer{}, false, fmt.Errorf("look for consent: %w", err)
	}
	for _, s := range stored {
		var q Question
		var a Answer
		if s.Answer == nil || json.Unmarshal(s.Body, &q) != nil || json.Unmarshal(s.Answer, &a) != nil || q.Consent != to || a.Text != Always {
			continue
		}
		k.emit(agent.Event{Kind: agent.Notice, Text: to + ": " + a.By + " has approved of this for the whole task.", Time: time.Now()})
		return a, true, nil
	}
	return Answer{}, false, nil
}

// fenced puts text into a code block that nothing in it can end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}
