package tasks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
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
// a sentence in Ending.Sentence and a row in docs/runs.md.
var endings = []EndingInfo{
	{Answered, "Done", "✅", ClassDone},
	{Failed, "Failed", "❌", ClassFailed},
	{TimedOut, "Timed out", "⏱", ClassLimit},
	{Stalled, "Stalled", "⏱", ClassLimit},
	{Cancelled, "Stopped", "🛑", ClassStopped},
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
	Found   bool         `json:"found,omitempty"`  // Redis had lost the ending; the final message was in the thread

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
		return fmt.Sprintf("Stopped at the time limit of %s. Ask for something smaller, or ask "+
			"again to continue from here.", e.Limit)
	case Stalled:
		return fmt.Sprintf("Stopped because the agent showed no activity for %s. Ask again to continue.", e.Limit)
	case Cancelled:
		if e.By == "" {
			return "Stopped. Ask again to continue."
		}
		return fmt.Sprintf("Stopped by %s. Ask again to continue.", strings.TrimPrefix(e.By, "@"))
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

// Lasted is [legible.Lasted].
func Lasted(d time.Duration) string { return legible.Lasted(d) }

// Verification holds the results of a repository's verification commands, which should succeed before work is
// published. The worker runs them itself on the work it is about to push: the agent is asked to run them too, but its
// word proves nothing.
type Verification struct {
	Ran     []Verified `json:"ran,omitempty"`
	Unrun   []string   `json:"unrun,omitempty"`   // the commands that were not run
	Problem string     `json:"problem,omitempty"` // a clause: why some were not run, or why the list could not be read
	Before  bool       `json:"before,omitempty"`  // nothing new was pushed, so the commands ran before
}

// Verified is the result of one verification command.
type Verified struct {
	Command  string        `json:"command"`
	Outcome  agent.Outcome `json:"outcome"`
	ExitCode int           `json:"exit_code"`
	Said     string        `json:"said,omitempty"` // the end of its output, if it failed
	Duration time.Duration `json:"duration"`
}

// Line summarizes the results in a few words; empty if there are none.
func (c *Verification) Line() string {
	if c == nil || c.Before {
		return ""
	}
	var said []string
	var failed []string
	for _, one := range c.Ran {
		if one.Outcome != agent.Done {
			failed = append(failed, one.Command)
		}
	}
	if len(failed) > 0 {
		said = append(said, fmt.Sprintf("%d of %d checks failed: %s", len(failed), len(c.Ran)+len(c.Unrun),
			strings.Join(failed, ", ")))
	} else if len(c.Ran) > 0 && len(c.Unrun) == 0 {
		said = append(said, "all checks succeeded")
	}
	switch {
	case c.Problem == "":
	case len(c.Ran) > 0 && len(c.Unrun) == 1:
		said = append(said, "1 was not run: "+c.Problem)
	case len(c.Ran) > 0:
		said = append(said, fmt.Sprintf("%d were not run: %s", len(c.Unrun), c.Problem))
	default:
		said = append(said, "the checks were not run: "+c.Problem)
	}
	return strings.Join(said, "; ")
}

const (
	maxVerification = 12_000 // bytes of Markdown; the first results are kept
	maxCommand      = 300    // characters of one command
)

// Markdown renders the results for the description of a pull request; empty if there are none.
func (c *Verification) Markdown() string {
	if c == nil {
		return ""
	}
	headline := c.Line()
	if c.Before {
		headline = "the checks were not run again: the work had been pushed before"
	}
	first, size := utf8.DecodeRuneInString(headline)
	headline = string(unicode.ToUpper(first)) + headline[size:]
	var b strings.Builder
	fmt.Fprintf(&b, "**%s.**\n", markdown.NeutralLine(untrusted.Line(headline, 1000)))
	var blocks []string
	for _, one := range c.Ran {
		block := fmt.Sprintf("\n%s %s.\n", untrusted.Code(one.Command, maxCommand), one.fate())
		if text := strings.TrimSpace(one.Said); text != "" {
			block += "\n" + markdown.Neutral(markdown.Fenced("", text)+"\n")
		}
		blocks = append(blocks, block)
	}
	for _, command := range c.Unrun {
		blocks = append(blocks, fmt.Sprintf("\n%s was not run.\n", untrusted.Code(command, maxCommand)))
	}
	left := maxVerification
	for _, block := range blocks {
		if left -= len(block); left < 0 {
			b.WriteString("\nThe rest is left out.\n")
			break
		}
		b.WriteString(block)
	}
	return b.String() + "\n---\n"
}

// fate says how a command ended and how long it took.
func (v Verified) fate() string {
	lasted := Lasted(v.Duration)
	switch {
	case v.Outcome == agent.Done:
		return "succeeded after " + lasted
	case v.Outcome == agent.Limit:
		return "was stopped after " + lasted + ", when the time for the checks was over"
	case v.ExitCode < 0:
		return "was killed by a signal after " + lasted
	}
	return fmt.Sprintf("failed with exit code %d after %s", v.ExitCode, lasted)
}
