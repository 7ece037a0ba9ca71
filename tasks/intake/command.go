package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Word is a command that a message consists of, instead of a request.
type Word string

// The commands that every chat-like source has.
const (
	Stop   Word = "stop"
	Cancel Word = "cancel" // the same as Stop
	Status Word = "status"
	Retry  Word = "retry"
	Help   Word = "help"
)

// ParseWord reads a message that is one of the commands and nothing else. Case, and a full stop or exclamation mark
// behind it, do not matter.
func ParseWord(text string) (w Word, ok bool) {
	text = strings.TrimRightFunc(text, func(r rune) bool { return r == '.' || r == '!' || unicode.IsSpace(r) })
	w = Word(strings.ToLower(strings.TrimSpace(text)))
	return w, slices.Contains([]Word{Stop, Cancel, Status, Retry, Help}, w)
}

// The sentences that answer a command.
const (
	NothingRuns  = "Nothing is running here."
	Stopping     = "Stopping. This can take a few seconds."
	Retrying     = "Trying this again."
	StillRunning = "This is still running."
	HasEnded     = "This has already ended."
	Forgotten    = "I no longer have this task. Ask again to start over."
)

// Reply is the answer to a command.
type Reply struct {
	Text string // a sentence for the person
	Done bool   // whether the command changed anything
}

// Command is a command of one person. Carrying it out again changes nothing, so an event may arrive late and twice. If
// the person may not do that, the error is a tasks.ErrRefused, and the reply says so.
type Command struct {
	Desk *desk.Desk
	ID   string                // what the message's ID would be as a task: the command is about earlier tasks only
	At   time.Time             // when it was given
	By   string                // who gave it, for display
	May  func(tasks.Task) bool // reports whether they may stop and retry a task
}

// Stop cancels what is under way in threads.
func (c Command) Stop(ctx context.Context, threads ...string) (Reply, error) {
	var stopped, spared int
	for _, thread := range threads {
		n, others, err := c.Desk.StopAll(ctx, thread, c.ID, c.By, c.May)
		if err != nil {
			return Reply{}, err
		}
		stopped, spared = stopped+n, spared+others
	}
	switch {
	case stopped > 0:
		return Reply{Text: Stopping, Done: true}, nil
	case spared > 0:
		return Reply{Text: policy.NotYours}, tasks.ErrRefused
	}
	return Reply{Text: NothingRuns}, nil
}

// RetryLatest runs a thread's latest task again.
func (c Command) RetryLatest(ctx context.Context, thread tasks.Thread) (Reply, error) {
	st, err := c.Desk.Latest(ctx, thread)
	if errors.Is(err, tasks.ErrNotFound) {
		return Reply{Text: Forgotten}, nil
	}
	if err != nil {
		return Reply{}, err
	}
	return c.Retry(ctx, st)
}

// Retry runs a task again.
func (c Command) Retry(ctx context.Context, st tasks.Status) (Reply, error) {
	if !c.May(st.Task) {
		return Reply{Text: policy.NotYours}, tasks.ErrRefused
	}
	err := c.Desk.Repeat(ctx, st, c.At)
	if errors.Is(err, tasks.ErrNotEnded) {
		return Reply{Text: StillRunning}, nil
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		return Reply{Text: input.Sentence}, nil
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{Text: Retrying, Done: true}, nil
}

// Status describes what is under way in the thread with a name or, if nothing is, how its latest task ended; one line a
// task.
func (c Command) Status(ctx context.Context, name string, thread tasks.Thread, now time.Time) (string, error) {
	open, err := c.Desk.Open(ctx, name)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, st := range open {
		if st.State == "running" { // only Desk.Status knows the open questions
			if st, err = c.Desk.Status(ctx, st.Task.ID); err != nil {
				return "", err
			}
		}
		lines = append(lines, Describe(st, now))
	}
	if len(lines) > 0 {
		return strings.Join(lines, "\n"), nil
	}
	st, err := c.Desk.Latest(ctx, thread)
	if errors.Is(err, tasks.ErrNotFound) {
		return NothingRuns, nil
	}
	if err != nil {
		return "", err
	}
	return Describe(st, now), nil
}

// maxTitle is how much of a task's title a status line shows, in characters.
const maxTitle = 80

// Describe returns the state of one task in a sentence.
func Describe(st tasks.Status, now time.Time) string {
	title := "“" + untrusted.Cut(st.Task.Title(), maxTitle) + "”"
	switch {
	case st.Ending != nil:
		h := st.Ending.Headline()
		return strings.TrimSuffix(fmt.Sprintf("%s: %s %s · %s", title, h.Sign, h.Text(nil), st.Ending.Footer()), " · ")
	case st.State == "running" && len(st.Questions) > 0:
		return title + " is waiting for your answer."
	case st.State == "running" && st.Why == "":
		return fmt.Sprintf("%s has been running for %s.", title, tasks.Lasted(now.Sub(st.Started)))
	case st.Why != "":
		return fmt.Sprintf("%s is waiting: %s.", title, st.Why)
	}
	return title + " has been added to the run in this thread."
}

// maxAnswer is how much of an answer is quoted, in characters.
const maxAnswer = 300

// NotWaiting is the reply to an answer that comes too late.
const NotWaiting = "No question is waiting for an answer."

// AnsweredBefore returns the reply to an answer that comes too late: it quotes the first answer.
func AnsweredBefore(a tasks.Answer) string {
	if a.Expired {
		return NotWaiting
	}
	return fmt.Sprintf("%s has already answered: %s", untrusted.Short(a.By, 100), untrusted.Short(a.Text, maxAnswer))
}

// Outcome returns the line below a question that shows its answer; empty while the question is open. person and quote
// convert a name and a text to the source's notation.
func Outcome(q tasks.Question, person, quote func(string) string) string {
	switch a := q.Answer; {
	case a == nil:
		return ""
	case a.Expired && q.Consent != "":
		return "⏱ Not approved in time."
	case a.Expired:
		return "⏱ Not answered in time."
	default:
		return "✅ " + person(untrusted.Short(a.By, 100)) + ": " + quote(untrusted.Short(a.Text, maxAnswer))
	}
}
