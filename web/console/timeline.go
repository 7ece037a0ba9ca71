package console

import (
	"html/template"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// maxDepth is how deep nested sub-agents are indented. Deeper ones are shown at this depth.
const maxDepth = 4

// entry is one event of a run on the page, a tool call with its result, or the joined pieces of a text.
type entry struct {
	ID     string // of its first event
	Time   time.Time
	Kind   string
	Label  string // the kind in words, where the text does not show it
	Text   string
	Call   string // the ID of the tool call
	Input  string // of the call
	Result string // of the call
	Agent  string // the kind of sub-agent that did it
	Done   bool   // there is a result
	Error  bool
	Open   bool     // more of its text may follow
	Below  []*entry // the events of the sub-agent that the call started
}

// Formatted returns the text of an agent, which is Markdown, as HTML.
func (e *entry) Formatted() template.HTML { return formatMarkdown(e.Text) }

// timeline arranges events. static/task.js arranges later events in the same way, and fills in the skeletons.
type timeline struct {
	Entries []*entry
	Used    tasks.Logged // the latest event about usage; zero before the first

	calls  map[string]*entry // by tool call
	places map[string]place  // where the events of the sub-agent of a tool call go
}

type place struct {
	list  *[]*entry
	depth int
}

func newTimeline() *timeline {
	return &timeline{calls: map[string]*entry{}, places: map[string]place{}}
}

// labels are the labels of entries, by kind.
var labels = map[string]string{
	"started": "started", "absorbed": "follow-up", "said": "update", "asked": "question", "replied": "answer", "notice": "note",
	"turn_end": "failed", "log": "log",
}

// skeletons returns one empty entry of each kind, for the script to fill in.
func skeletons() (list []*entry) {
	for _, kind := range []string{"text", "thinking", "tool_use", "tool_result", "started", "absorbed", "said", "asked", "replied", "notice", "turn_end"} {
		list = append(list, &entry{Kind: kind, Label: labels[kind]})
	}
	return list
}

func (t *timeline) add(l tasks.Logged) {
	e := l.Event
	kind := string(e.Kind)
	switch kind {
	case "taken", "tool_input":
		return
	case "used":
		t.Used = l
		return
	case "turn_end":
		if !e.Error { // the text events before it had its text
			return
		}
	case "tool_result":
		if call := t.calls[e.ToolID]; call != nil {
			call.Result, call.Done, call.Error = legible.Text(e.Text), true, e.Error
			return
		}
	}
	at, known := t.places[e.Parent]
	if !known {
		at.list = &t.Entries
	}
	if n := len(*at.list); n > 0 && (kind == "text" || kind == "thinking") {
		if last := (*at.list)[n-1]; last.Kind == kind {
			last.Text += legible.Text(e.Text)
			return
		}
	}
	added := &entry{
		ID: l.ID, Time: e.Time, Kind: kind, Label: labels[kind], Text: strings.TrimLeft(legible.Text(e.Text), "\n"), Call: e.ToolID, Agent: e.Agent,
		Input: formatInput(e.Input), Error: e.Error,
	}
	switch kind {
	case "tool_result":
		added.Text, added.Result, added.Done = "Result of an earlier call", added.Text, true
	case "asked":
		added.Input = "" // the question, which is the text
	case "absorbed", "replied":
		if e.Tool != "" {
			added.Label += " by " + e.Tool
		}
	case "tool_use":
		t.calls[e.ToolID], t.places[e.ToolID] = added, at
		if at.depth < maxDepth {
			t.places[e.ToolID] = place{&added.Below, at.depth + 1}
		}
	}
	*at.list = append(*at.list, added)
}
