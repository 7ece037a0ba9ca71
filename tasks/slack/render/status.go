package render

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// maxAction is how much of an action a status shows, in characters.
const maxAction = 80

// Status is the content of a status message: one line of mrkdwn.
type Status struct{ State string }

// Message is the status with buttons. The text beside the blocks is for notifications.
func (s Status) Message(buttons []Button) []slack.MsgOption {
	blocks := []slack.Block{slack.NewSectionBlock(mrkdwnText(s.State), nil, nil)}
	if len(buttons) > 0 {
		blocks = append(blocks, buttonRow(buttons))
	}
	return []slack.MsgOption{s.Text(buttons), slack.MsgOptionBlocks(blocks...)}
}

// Text is the status without blocks.
func (s Status) Text(buttons []Button) slack.MsgOption {
	return slack.MsgOptionText(Dots(append([]string{s.State}, buttonLinks(buttons)...)...), false)
}

// Begun is the status of a run whose agent has not done anything yet.
func Begun() Status { return Status{"⏳ On it…"} }

// Working is the status of a run: its latest action, the tool calls that came back, and its time. The time is in whole
// minutes, so that it changes no more often than that.
func Working(action string, steps int, elapsed time.Duration) Status {
	state := "⏳ Working"
	if action != "" {
		first, size := utf8.DecodeRuneInString(action)
		state += ": " + Literal(string(unicode.ToLower(first))+action[size:], maxAction)
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
	return Status{state + inBrackets(count, lasted)}
}

// Headline is the status of a task that waits, for its turn or for an answer.
func Headline(h tasks.Headline) Status {
	h.Detail = Literal(h.Detail, MaxSentence)
	return Status{h.Sign + " " + h.Text(moment)}
}

// Ended is the last status of a task. The final message names who stopped it.
func Ended(e tasks.Ending) Status {
	e.By = ""
	s := Headline(e.Headline())
	if e.Result.Duration > 0 {
		s.State += inBrackets(tasks.Lasted(e.Result.Duration))
	}
	return s
}

// inBrackets joins the texts that are not empty.
func inBrackets(texts ...string) string {
	if inside := strings.ReplaceAll(Dots(texts...), " · ", ", "); inside != "" {
		return " (" + inside + ")"
	}
	return ""
}
