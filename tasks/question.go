package tasks

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Answering returns what answering the question is for the policy. Sources check the people who answer there.
func (q Question) Answering() policy.Action {
	if q.Consent != "" {
		return policy.Approve
	}
	return policy.Use
}

// Reply makes a submitted message a possible answer to the question that the running task of its thread waits for.
// With the zero value, only the person who asked for that task can answer, and the answer is the message's prompt.
type Reply struct {
	// Text returns the message's answer to q, or the error that Submit returns. If it is nil, the rule of the zero
	// value applies.
	Text func(ctx context.Context, q Question) (string, error)
	// Precision is the precision of the time in the message's ID. A message that is older than the question is not an
	// answer to it.
	Precision time.Duration
	// Only means that the message never becomes a task: Submit returns ErrNoQuestion if it is not an answer. In this
	// case t only needs ID, Source, Thread, Class and Actor.
	Only bool
}

// The answers that are offered to a request for approval. Others are understood as well: see permit.
const (
	Approve = "Approve"
	Always  = "Always for this task"
	Deny    = "Deny"
)

// Denial returns the answer that denies a call for a reason.
func Denial(reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return Deny
	}
	return Deny + ": " + reason
}

// Question is a question of the agent to a person.
type Question struct {
	Key     string    `json:"key"` // the same for the same question of the same task
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"` // offered answers; other text is accepted, too
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"`             // when the agent continues without an answer
	Consent string    `json:"consent,omitempty"` // in a request for approval: what "Always for this task" approves
	Answer  *Answer   `json:"answer,omitempty"`

	Profile agent.Profile `json:"profile,omitempty"` // of the run that asks; who answers needs the rights for it
	// Unsandboxed means that this run can execute commands without a sandbox; see rights.Policy.Permit.
	Unsandboxed bool `json:"unsandboxed,omitempty"`

	Fence int64 `json:"-"` // of the run that asked
}

// Answer is the answer to a question, or the fact that it expired.
type Answer struct {
	Text    string    `json:"text,omitempty"`
	By      string    `json:"by,omitempty"`
	Name    string    `json:"name,omitempty"` // of By, if that is an account
	At      time.Time `json:"at"`
	Expired bool      `json:"expired,omitempty"` // there was no answer in time
	Message string    `json:"message,omitempty"` // the ID that the answering message would have had as a task
}

// Who returns the name of the person who answered.
func (a Answer) Who() string { return cmp.Or(a.Name, a.By) }

// The kinds of events about messages, questions and answers of a run.
const (
	Said    agent.Kind = "said"    // Text is an intermediate message of the agent
	Asked   agent.Kind = "asked"   // Input is the Question
	Replied agent.Kind = "replied" // Text is the answer, Tool who gave it; Error means that there was no answer
)
