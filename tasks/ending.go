package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// EndingKind says how a task ended.
type EndingKind string

// The kinds of endings. docs/runs.md shows how a task gets to each.
const (
	Answered   EndingKind = "answered"
	Failed     EndingKind = "failed"
	TimedOut   EndingKind = "timed_out"
	Stalled    EndingKind = "stalled"
	Cancelled  EndingKind = "cancelled"
	Refused    EndingKind = "refused"    // before anything ran
	Lost       EndingKind = "lost"       // its workers died too many times
	Superseded EndingKind = "superseded" // by something newer; see Reason
	Withdrawn  EndingKind = "withdrawn"  // by the asker, before anything ran; no message is posted
)

// Ending is the one terminal state of a task. The first cause decides it.
type Ending struct {
	Kind   EndingKind   `json:"kind"`
	By     string       `json:"by,omitempty"`     // who cancelled
	Reason string       `json:"reason,omitempty"` // one sentence for people, if Kind does not say enough
	Limit  string       `json:"limit,omitempty"`  // the limit that was reached, as a duration
	Result agent.Result `json:"result"`           // zero when nothing ran
	Bill   Bill         `json:"bill,omitzero"`
	At     time.Time    `json:"at"`
	Covers []string     `json:"covers,omitempty"` // absorbed tasks that end with this one

	Published *Published `json:"published,omitempty"` // nil: there was nothing to publish
	Found     bool       `json:"found,omitempty"`     // Redis had lost the ending, and the final message was found in the thread

	Retried time.Time `json:"-"` // when the task was last retried; earlier messages belong to an earlier ending. Set for Close
}

// ForAbsorbed returns the ending of a task that another task's run absorbed, without the fields that only the other task keeps.
func (e Ending) ForAbsorbed(id string) json.RawMessage {
	own := Ending{Kind: e.Kind, By: e.By, Reason: e.Reason, Limit: e.Limit, At: e.At, Published: e.Published}
	if e.Kind == Answered {
		own.Reason = "This was answered together with task " + id + "."
	}
	return format.JSON(own)
}

// maxEnding keeps an ending within the store's limit of 1 MiB.
const maxEnding = 1000 << 10

// Encode marshals the ending. If it is too large for the store, Encode cuts stderr first and then the answer. The log
// has the whole answer.
func (e Ending) Encode() json.RawMessage {
	body := format.JSON(e)
	if len(body) > maxEnding {
		e.Result.Stderr = ""
		body = format.JSON(e)
	}
	for n := min(len(e.Result.Text), maxEnding); len(body) > maxEnding && n > 0; n /= 2 {
		e.Result.Text, _ = format.Head(e.Result.Text, n)
		e.Result.Text += "\n\n[The answer was too long to store. The log has all of it.]"
		body = format.JSON(e)
	}
	return body
}

// partialLength is how much of an unfinished answer is shown, in characters.
const partialLength = 1000

// Sentence says in one sentence how the task ended and what to do about it; empty if the answer is enough.
func (e Ending) Sentence() string {
	switch e.Kind {
	case Answered:
		if e.Result.Text == "" {
			return cmp.Or(e.Reason, "Done. The agent had nothing to add.")
		}
		return ""
	case TimedOut:
		return fmt.Sprintf("This timed out after %s and was stopped. Ask for less at once, or ask again to continue from here.", e.Limit)
	case Stalled:
		return fmt.Sprintf("The agent showed no sign of work for %s and was stopped. Ask again to go on.", e.Limit)
	case Cancelled:
		if e.By == "" {
			return "This was stopped. Ask again to go on."
		}
		return fmt.Sprintf("This was stopped by %s. Ask again to go on.", e.By)
	case Withdrawn:
		return "This was withdrawn."
	case Lost:
		return "The workers running this died several times, so errand gave up, at unknown cost. Ask an operator to look at the log."
	}
	if e.Reason != "" {
		return e.Reason
	}
	return "This failed. The log says more."
}

// Partial returns the beginning of what the agent was saying when it was stopped, at most 1,000 characters; empty for
// an answered task.
func (e Ending) Partial() string {
	if e.Kind == Answered {
		return ""
	}
	runes := []rune(strings.TrimSpace(e.Result.Partial))
	if len(runes) <= partialLength {
		return string(runes)
	}
	return string(runes[:partialLength]) + "…"
}

// Said returns the agent's complete answers and the beginning of what it was saying when it was stopped.
func (e Ending) Said() string { return format.Paragraphs(e.Result.Text, e.Partial()) }

// Body returns the same as Markdown. The unfinished part is a quote, so that it closes any Markdown that the
// interruption left open.
func (e Ending) Body() string {
	partial := e.Partial()
	if partial != "" {
		e.Result.Text = markdown.Closed(e.Result.Text) // otherwise an open block would continue into the partial answer
		partial = "Partial answer:\n\n> " + strings.ReplaceAll(partial, "\n", "\n> ")
	}
	return format.Paragraphs(e.Result.Text, partial)
}

// Footer returns the line of facts below a final message: duration, turns, cost, model.
func (e Ending) Footer() string {
	r := e.Result
	if r.Duration == 0 {
		return ""
	}
	parts := []string{Lasted(r.Duration)}
	switch {
	case r.Turns == 1:
		parts = append(parts, "1 turn")
	case r.Turns > 1:
		parts = append(parts, fmt.Sprintf("%d turns", r.Turns))
	}
	if c := e.cost(); c != "" {
		parts = append(parts, c)
	}
	if r.Model != "" {
		parts = append(parts, r.Model)
	}
	switch r.StopReason {
	case "", "end_turn", "stop_sequence", "tool_use":
	default: // the model was cut off
		parts = append(parts, "stopped by "+r.StopReason)
	}
	if r.Fresh {
		parts = append(parts, "a new conversation, because the earlier one could not be resumed")
	}
	return strings.Join(append(parts, e.Bill.Near...), " · ")
}

// Lasted formats a duration in whole seconds, without zero units: 2h, 15m, 1h0m5s.
func Lasted(d time.Duration) string {
	s := d.Round(time.Second).String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}
