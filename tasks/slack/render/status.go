package render

import (
	"fmt"
	"slices"
	"strconv"
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

// eventType is the kind of metadata that marks a message of errand's.
const eventType = "errand_task"

// The parts of a task's report. The status is one message, which is edited. Everything else may take several messages: a final message
// has the parts "final/1", "final/2" and so on, and one that had to be posted in plain text "final/1.1", "final/1.2".
const (
	StatusPart   = "status"
	FinalPart    = "final"
	UpdatePart   = "update"
	QuestionPart = "question"
	ListPart     = "list"
)

// maxCovers keeps the metadata of a final message within what Slack takes. A message is found by its task and ending.
const maxCovers = 50

// Marker says which part of which task's report a message is. People do not see it, and only the author of a message can write it.
type Marker struct {
	Task, Part string
	Ending     string // which of the task's endings a final message is about: a task that was retried has another
	Covers     string // IDs of further tasks that a final message is for, as many as there is room for
	Question   string // key of the question that a message asks
	Pull       string // pull request that a notice is about
}

// StatusMarker marks the status message of a task.
func StatusMarker(t tasks.Task) Marker { return Marker{Task: t.ID, Part: StatusPart} }

// FinalMarker marks the final message for an ending.
func FinalMarker(t tasks.Task, e tasks.Ending) Marker {
	covers := strings.Join(e.Covers[:min(len(e.Covers), maxCovers)], " ")
	return Marker{Task: t.ID, Part: FinalPart, Ending: strconv.FormatInt(e.At.UnixMicro(), 10), Covers: covers}
}

// Metadata is the marker as it goes with a message.
func (m Marker) Metadata() slack.SlackMetadata {
	payload := map[string]any{"task": m.Task, "part": m.Part}
	for name, value := range map[string]string{"ending": m.Ending, "covers": m.Covers, "question": m.Question, "pull": m.Pull} {
		if value != "" {
			payload[name] = value
		}
	}
	return slack.SlackMetadata{EventType: eventType, EventPayload: payload}
}

// MarkerOf reads the marker of a message; zero if it has none.
func MarkerOf(m slack.Message) Marker {
	if m.Metadata.EventType != eventType {
		return Marker{}
	}
	field := func(name string) string {
		v, _ := m.Metadata.EventPayload[name].(string)
		return v
	}
	return Marker{
		Task: field("task"), Part: field("part"), Ending: field("ending"), Covers: field("covers"), Question: field("question"), Pull: field("pull"),
	}
}

// Is reports whether the marker is of that part, or of one of its pieces.
func (m Marker) Is(part string) bool { return m.Part == part || strings.HasPrefix(m.Part, part+"/") }

// FileName is the name of the file that the part goes into if Slack takes it as no message.
func (m Marker) FileName() string {
	name := strings.ReplaceAll(m.Part, "/", "-") + "-" + m.Task
	if m.Ending != "" {
		name += "-" + m.Ending
	}
	return name + ".md"
}
