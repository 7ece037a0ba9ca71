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

// EndingKind is how a task ended, for people.
type EndingKind string

// The kinds of endings. docs/runs.md draws how a task gets there.
const (
	Answered   EndingKind = "answered"
	Failed     EndingKind = "failed"
	TimedOut   EndingKind = "timed_out"
	Stalled    EndingKind = "stalled"
	Cancelled  EndingKind = "cancelled"
	Refused    EndingKind = "refused"    // before anything ran
	Lost       EndingKind = "lost"       // its workers died, too many times
	Superseded EndingKind = "superseded" // by something newer, which Reason tells
	Withdrawn  EndingKind = "withdrawn"  // before anything ran, by whoever asked: there is nobody to tell
)

// Ending is the one terminal state of a task, decided by the first cause.
type Ending struct {
	Kind   EndingKind   `json:"kind"`
	By     string       `json:"by,omitempty"`     // who cancelled
	Reason string       `json:"reason,omitempty"` // one sentence for people, where the kind alone does not say it
	Limit  string       `json:"limit,omitempty"`  // the limit that was reached, as a duration
	Result agent.Result `json:"result"`           // zero when nothing ran
	Bill   Bill         `json:"bill,omitzero"`
	At     time.Time    `json:"at"`
	Covers []string     `json:"covers,omitempty"` // further tasks that end with this, because the run has absorbed them

	Published *Published `json:"published,omitempty"` // nil: there was nothing to publish
	Found     bool       `json:"found,omitempty"`     // its final message was found in the thread: Redis had forgotten the ending

	Retried time.Time `json:"-"` // when the task was last tried again: what was posted before is of an earlier ending. Set for Close
}

// ForAbsorbed returns the ending of a task that another task's run absorbed, without the fields that only the other task keeps.
func (e Ending) ForAbsorbed(id string) json.RawMessage {
	own := Ending{Kind: e.Kind, By: e.By, Reason: e.Reason, Limit: e.Limit, At: e.At, Published: e.Published}
	if e.Kind == Answered {
		own.Reason = "This was answered together with task " + id + "."
	}
	return format.JSON(own)
}

// maxEnding keeps an ending within what the store takes, 1 MiB.
const maxEnding = 1000 << 10

// Encode marshals the ending, cut where it is too large to be stored: first what a process said to stderr, then the answer, of which
// the log has all.
func (e Ending) Encode() json.RawMessage {
	body := format.JSON(e)
	if len(body) > maxEnding {
		e.Result.Stderr = ""
		body = format.JSON(e)
	}
	for n := min(len(e.Result.Text), maxEnding); len(body) > maxEnding && n > 0; n /= 2 {
		e.Result.Text, _ = format.Head(e.Result.Text, n)
		e.Result.Text += "\n\n[The answer is longer than can be kept. The log has all of it.]"
		body = format.JSON(e)
	}
	return body
}

// partialLength is how much of an unfinished answer people are shown.
const partialLength = 1000

// Sentence says in one sentence how the task ended and what to do about it; empty when the answer speaks for itself.
func (e Ending) Sentence() string {
	switch e.Kind {
	case Answered:
		if e.Result.Text == "" {
			return cmp.Or(e.Reason, "Done. The agent had nothing to add.")
		}
		return ""
	case TimedOut:
		return fmt.Sprintf("This timed out after %s and was stopped. Ask for less at once, or ask again to go on from here.", e.Limit)
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
		return "The workers running this died several times, so it was given up, at unknown cost. An operator should look at the log."
	}
	if e.Reason != "" {
		return e.Reason
	}
	return "This failed. The log says more."
}

// Partial is the beginning of what the agent had said when it was stopped, at most 1,000 characters; empty when it had answered.
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

// Said is what the agent has said until it ended: what it had answered in full, and the beginning of what it was saying then.
func (e Ending) Said() string { return format.Paragraphs(e.Result.Text, e.Partial()) }

// Body is what the agent has said, in Markdown: its answer, or what there is of one. That is what it had answered in full, and the beginning
// of what it was saying then, as a quote, which ends whatever the break has left open.
func (e Ending) Body() string {
	partial := e.Partial()
	if partial != "" {
		e.Result.Text = markdown.Closed(e.Result.Text) // or else it would go on in the partial answer
		partial = "What the agent had said until then:\n\n> " + strings.ReplaceAll(partial, "\n", "\n> ")
	}
	return format.Paragraphs(e.Result.Text, partial)
}

// Footer is the line of facts below a final message: duration, turns, cost, model.
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
	default: // the model did not end by itself what it had to say
		parts = append(parts, "stopped by "+r.StopReason)
	}
	if r.Fresh {
		parts = append(parts, "a new conversation, the earlier one could not be resumed")
	}
	return strings.Join(append(parts, e.Bill.Near...), " · ")
}

// Lasted writes a duration in whole seconds as people do: 2h, 15m, 1h0m5s.
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
