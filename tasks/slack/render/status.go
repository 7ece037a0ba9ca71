package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// maxAction is how much of an action a status shows, in characters.
const maxAction = 80

// Status is the content of a status message, in mrkdwn.
type Status struct {
	State  string
	Detail string // may be empty
}

// Message is the status with buttons. The text beside the blocks is for notifications.
func (s Status) Message(buttons []Button) []slack.MsgOption {
	blocks := []slack.Block{slack.NewSectionBlock(mrkdwnText(s.State), nil, nil)}
	if s.Detail != "" {
		blocks = append(blocks, slack.NewContextBlock("", mrkdwnText(s.Detail)))
	}
	if len(buttons) > 0 {
		blocks = append(blocks, buttonRow(buttons))
	}
	return []slack.MsgOption{s.Text(buttons), slack.MsgOptionBlocks(blocks...)}
}

// Text is the status without blocks.
func (s Status) Text(buttons []Button) slack.MsgOption {
	return slack.MsgOptionText(Dots(append([]string{s.State, s.Detail}, buttonLinks(buttons)...)...), false)
}

// Begun is the status of a run whose agent has not done anything yet.
func Begun() Status { return Status{State: "⏳ On it…"} }

// Working is the status of a run: its latest action, the tool calls that came back, and its time. The time is in whole minutes, so that it
// changes no more often than that.
func Working(action string, steps int, elapsed time.Duration) Status {
	s := Status{State: "⏳ Working"}
	if action != "" {
		s.State += ": " + Literal(action, maxAction)
	}
	var count, lasted string
	switch {
	case steps == 1:
		count = "1 step"
	case steps > 1:
		count = fmt.Sprintf("%d steps", steps)
	}
	if elapsed = elapsed.Truncate(time.Minute); elapsed > 0 {
		lasted = tasks.Lasted(elapsed)
	}
	s.Detail = Dots(count, lasted)
	return s
}

// Queued is the status of a request that comes after others of its thread.
func Queued(position int) Status {
	if position == 1 {
		return Status{State: "⏳ Waiting: this is next in this thread"}
	}
	return Status{State: fmt.Sprintf("⏳ Waiting: %d requests of this thread come first", position)}
}

// Waiting is the status of a request that waits for a reason.
func Waiting(why string) Status { return Status{State: "⏳ " + Literal(why, MaxSentence)} }

// Ended is the last status of a task.
func Ended(e tasks.Ending) Status {
	state := map[tasks.EndingKind]string{
		tasks.Answered:  "✅ Done",
		tasks.TimedOut:  "⏱ Timed out",
		tasks.Stalled:   "⏱ Stalled",
		tasks.Cancelled: "🛑 Cancelled",
		tasks.Refused:   "❌ Not started",
		tasks.Lost:      "❌ Given up",
	}[e.Kind]
	if state == "" {
		state = "❌ Failed"
	}
	s := Status{State: state}
	if e.Result.Duration > 0 {
		s.Detail = tasks.Lasted(e.Result.Duration)
	}
	return s
}

// Dots joins the texts that are not empty.
func Dots(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), " · ")
}
