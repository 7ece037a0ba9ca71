package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// eventType is the kind of metadata that marks a message of errand's.
const eventType = "errand_task"

// The parts of a task's report. The status is one message, which is edited. Everything else may take several messages:
// a final message has the parts "final/1", "final/2" and so on, and one that had to be posted in plain text
// "final/1.1", "final/1.2".
const (
	StatusPart   = "status"
	RequestPart  = "request" // a request that the bot posted for a person
	FinalPart    = "final"
	UpdatePart   = "update"
	QuestionPart = "question"
	ListPart     = "list"
)

// maxCovers keeps the metadata of a final message within what Slack takes. A message is found by its task and ending.
const maxCovers = 50

// Marker says which part of which task's report a message is. People do not see it, and only the author of a message
// can write it.
type Marker struct {
	Task, Part string
	Ending     string // which of the task's endings a final message is about: a task that was retried has another
	Covers     string // IDs of further tasks that a final message is for, as many as there is room for
	Question   string // key of the question that a message asks
	Notice     string // key of the thread that a notice belongs to
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
	for name, value := range map[string]string{
		"ending": m.Ending, "covers": m.Covers, "question": m.Question, "pull": m.Notice,
	} {
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
		Task: field("task"), Part: field("part"), Ending: field("ending"), Covers: field("covers"),
		Question: field("question"), Notice: field("pull"),
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
