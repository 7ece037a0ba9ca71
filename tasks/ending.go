package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// EndingKind says how a task ended.
type EndingKind string

// The kinds of endings. docs/states.md shows how a task gets to each.
const (
	Answered   EndingKind = "answered"
	Failed     EndingKind = "failed"
	TimedOut   EndingKind = "timed_out"
	Stalled    EndingKind = "stalled"
	Cancelled  EndingKind = "cancelled"
	Taken      EndingKind = "taken"      // over by a person, with the work so far
	Refused    EndingKind = "refused"    // before anything ran
	Lost       EndingKind = "lost"       // its workers died too many times
	Superseded EndingKind = "superseded" // by something newer; see Reason
	Withdrawn  EndingKind = "withdrawn"  // by the asker, before anything ran; no message is posted
)

// EndingClass groups the kinds of endings by what they mean for the requester.
type EndingClass int

// The classes of endings. The zero value is that of an unknown kind.
const (
	ClassFailed EndingClass = iota
	ClassDone
	ClassLimit   // a time limit was reached
	ClassStopped // by a person or by something newer
	ClassRefused
)

// EndingInfo describes a kind of ending.
type EndingInfo struct {
	Kind  EndingKind
	Title string // for people, such as "Timed out"
	Sign  string // an emoji
	Class EndingClass
}

// endings is the one table of endings, in the order in which filters and lists show them. A new kind needs a row here,
// a sentence in Ending.Sentence and a row in docs/states.md.
var endings = []EndingInfo{
	{Answered, "Done", "✅", ClassDone},
	{Failed, "Failed", "❌", ClassFailed},
	{TimedOut, "Timed out", "⏱", ClassLimit},
	{Stalled, "Stalled", "⏱", ClassLimit},
	{Cancelled, "Stopped", "🛑", ClassStopped},
	{Taken, "Taken over", "🛑", ClassStopped},
	{Refused, "Not started", "❌", ClassRefused},
	{Lost, "Given up", "❌", ClassFailed},
	{Superseded, "Superseded", "🛑", ClassStopped},
	{Withdrawn, "Withdrawn", "🛑", ClassStopped},
}

// Word returns the kind of an ending as a word, with the class of its error, such as "failed (budget)". It is the
// result of the delivery in asynq.
func (e Ending) Word() string {
	if e.Result.Error == nil || e.Result.Error.Class == "" {
		return string(e.Kind)
	}
	return fmt.Sprintf("%s (%s)", e.Kind, e.Result.Error.Class)
}

// EndingKinds returns all kinds in the order in which filters and lists show them.
func EndingKinds() []EndingKind {
	list := make([]EndingKind, len(endings))
	for i, e := range endings {
		list[i] = e.Kind
	}
	return list
}

// Info describes the kind. An unknown kind, of a newer version, is described as failed.
func (k EndingKind) Info() EndingInfo {
	for _, e := range endings {
		if e.Kind == k {
			return e
		}
	}
	return EndingInfo{Kind: k, Title: "Failed", Sign: "❌"}
}

// Ending is the one terminal state of a task. The first cause decides it.
type Ending struct {
	Kind   EndingKind   `json:"kind"`
	By     string       `json:"by,omitempty"`     // who cancelled
	Reason string       `json:"reason,omitempty"` // one sentence for people, if Kind does not say enough
	Option string       `json:"option,omitempty"` // what the refusal is about; see InputError
	Limit  string       `json:"limit,omitempty"`  // the limit that was reached, as a duration
	Result agent.Result `json:"result"`           // zero when nothing ran
	Bill   Bill         `json:"bill,omitzero"`
	At     time.Time    `json:"at"`
	Covers []string     `json:"covers,omitempty"` // absorbed tasks that end with this one

	Published *Published `json:"published,omitempty"` // nil: there was nothing to publish
	// Also has the work published in further repositories. Without work in the main one, the first of them is
	// Published.
	Also    []*Published `json:"also,omitempty"`
	Changed Diffstat     `json:"changed,omitzero"` // by the run, in the clone of its main repository
	// Settings are the model and the effort, as far as errand has chosen them, with who wanted them.
	Settings []policy.Setting `json:"settings,omitempty"`
	Found    bool             `json:"found,omitempty"` // Redis had lost the ending; the final message was in the thread

	Retried time.Time `json:"-"` // time of the last retry; earlier messages are of an earlier ending. Set for Close
}

// ForAbsorbed returns the ending of a task that another task's run absorbed, without the fields that only the other
// task keeps.
func (e Ending) ForAbsorbed(id string) json.RawMessage {
	own := Ending{
		Kind: e.Kind, By: e.By, Reason: e.Reason, Limit: e.Limit, At: e.At, Published: e.Published, Also: e.Also,
		Changed: e.Changed,
	}
	if e.Kind == Answered {
		own.Reason = AnsweredWith(id)
	}
	return format.JSON(own)
}

// AnsweredWith says that another task's run answered this one.
func AnsweredWith(id string) string {
	return "This was answered together with task " + display.TaskID(id) + "."
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
		return fmt.Sprintf("Stopped at the time limit of %s. Ask for something smaller, or ask "+
			"again to continue from here.", e.Limit)
	case Stalled:
		return fmt.Sprintf("Stopped because the agent showed no activity for %s. Ask again to continue.", e.Limit)
	case Cancelled:
		return strings.TrimSpace("Stopped "+e.stopper()) + ". Ask again to continue."
	case Taken:
		return strings.TrimSpace("Taken over "+e.stopper()) + ". Ask again to continue here."
	case Withdrawn:
		return "Withdrawn."
	case Lost:
		return "The workers running this died several times, so errand gave up. The cost is unknown. Ask " +
			"an operator to check the log."
	}
	if e.Reason != "" {
		return e.Reason
	}
	return "This failed. See the log for details."
}

// stopper says who stopped the task, as in "by Ann". The console's token does not know.
func (e Ending) stopper() string {
	switch e.By {
	case "":
		return ""
	case Console:
		return inConsole
	}
	return "by " + strings.TrimPrefix(e.By, "@")
}

// Console is who acts with the console's token, which does not identify a person.
const Console = "console"

const inConsole = "in the console"

// Partial returns the beginning of what the agent was saying when it was stopped, at most 1,000 characters; empty for
// an answered task.
func (e Ending) Partial() string {
	if e.Kind == Answered {
		return ""
	}
	return untrusted.Cut(strings.TrimSpace(e.Result.Partial), partialLength+1) // with the dots
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
	turns, stopped, fresh := "", "", ""
	switch {
	case r.Turns == 1:
		turns = "1 turn"
	case r.Turns > 1:
		turns = fmt.Sprintf("%d turns", r.Turns)
	}
	switch r.StopReason {
	case "", "end_turn", "stop_sequence", "tool_use":
	default:
		stopped = "cut off by the model"
	}
	if r.Fresh {
		fresh = "a new conversation, because the earlier one could not be resumed"
	}
	parts := append([]string{Lasted(r.Duration), turns, e.cost(), r.Model, stopped, fresh}, e.Bill.Near...)
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " · ")
}

// Lasted is [display.Lasted].
func Lasted(d time.Duration) string { return display.Lasted(d) }

// Bill is what the final message says about a task's cost beyond the cost of its last run.
type Bill struct {
	Earlier float64  `json:"earlier_usd,omitempty"` // cost of its earlier runs, interrupted or retried
	Crashes int      `json:"crashes,omitempty"`     // runs that died with their worker, at unknown cost
	Near    []string `json:"near,omitempty"`        // the daily budgets that the task pushed above 80 %
	UsedUp  bool     `json:"used_up,omitempty"`     // the task's own maximum ended the run, so a retry has nothing left
}

// CostUSD returns the known cost of the task when it ended, including its earlier runs.
func (e Ending) CostUSD() float64 { return format.WholeUSD(e.Result.CostUSD + e.Bill.Earlier) }

// cost returns that cost as text; empty if nothing is known.
func (e Ending) cost() string {
	text := ""
	if usd := e.CostUSD(); usd > 0 {
		text = display.Dollars(usd)
	}
	if e.Bill.Crashes > 0 {
		text = strings.TrimPrefix(text+" and the unknown cost of runs that died with a worker", " and ")
	}
	return text
}
