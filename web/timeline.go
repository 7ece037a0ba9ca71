package web

import (
	"html/template"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// maxDepth is how deep sub-agents of sub-agents are indented; what is deeper stands beside its parent.
const maxDepth = 4

// entry is one thing that happened in a run, as the page shows it: a tool call with what came back, or several pieces of the same text.
type entry struct {
	ID    string // of its first event
	Time  time.Time
	Kind  string
	Label string // what it is, where the words alone do not tell
	Text  string
	Call  string // the tool call it is, or is the result of
	Input string // of the call
	Back  string // what came back
	Agent string // the kind of sub-agent that did it
	Done  bool   // something came back
	Error bool
	Open  bool     // more of its text may come
	Below []*entry // what the sub-agent did that the call began
}

// Formatted is the text of an agent, which writes Markdown.
func (e *entry) Formatted() template.HTML { return formatted(e.Text) }

// timeline arranges events. static/task.js does the same with what comes later, and takes what they look like from skeletons.
type timeline struct {
	Entries []*entry
	Used    tasks.Logged // the latest event that tells what the run has used up; zero: none

	calls  map[string]*entry // by their IDs
	places map[string]place  // where their sub-agents' doings go
}

type place struct {
	list  *[]*entry
	depth int
}

func newTimeline() *timeline {
	return &timeline{calls: map[string]*entry{}, places: map[string]place{}}
}

// labels tell what happened, by kind.
var labels = map[string]string{
	"started": "started", "absorbed": "follow-up", "said": "update", "asked": "question", "replied": "answer", "notice": "note",
	"turn_end": "failed", "log": "log",
}

// skeletons are one empty entry of each kind, for the script to fill in.
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
		if !e.Error { // else its text was told in pieces
			return
		}
	case "tool_result":
		if call := t.calls[e.ToolID]; call != nil {
			call.Back, call.Done, call.Error = legible.Text(e.Text), true, e.Error
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
	made := &entry{
		ID: l.ID, Time: e.Time, Kind: kind, Label: labels[kind], Text: strings.TrimLeft(legible.Text(e.Text), "\n"), Call: e.ToolID, Agent: e.Agent,
		Input: spelled(e.Input), Error: e.Error,
	}
	switch kind {
	case "tool_result":
		made.Text, made.Back, made.Done = "What an earlier call brought", made.Text, true
	case "asked":
		made.Input = "" // the question itself, which the text has
	case "absorbed", "replied":
		if e.Tool != "" {
			made.Label += " by " + e.Tool
		}
	case "tool_use":
		t.calls[e.ToolID], t.places[e.ToolID] = made, at
		if at.depth < maxDepth {
			t.places[e.ToolID] = place{&made.Below, at.depth + 1}
		}
	}
	*at.list = append(*at.list, made)
}
