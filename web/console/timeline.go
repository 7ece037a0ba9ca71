package console

import (
	"context"
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
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
	Task   string // the ID of the task that was absorbed
	Who    string // its author
	Took   string // how long the call took
	Agent  string // the kind of sub-agent that did it
	Done   bool   // there is a result
	Error  bool
	Open   bool     // more of its text may follow
	Below  []*entry // the events of the sub-agent that the call started
}

// Formatted returns the text of an agent, which is Markdown, as HTML.
func (e *entry) Formatted() template.HTML { return formatMarkdown(e.Text) }

// Tool reports whether it is a tool call or the result of one.
func (e *entry) Tool() bool { return e.Kind == "tool_use" || e.Kind == "tool_result" }

// Agents reports whether the text is the agent's, and thus Markdown.
func (e *entry) Agents() bool { return e.Kind == "text" || e.Kind == "said" || e.Kind == "asked" }

// Short returns the first words of a message.
func (e *entry) Short() string { return tasks.Task{Prompt: e.Text}.Title() }

// timeline arranges events. static/task.js arranges later events in the same way, and fills in the skeletons.
type timeline struct {
	Entries []*entry
	Used    desk.Logged // the latest event about usage; zero before the first

	doing    string   // what the agent does, by the latest event
	absorbed []*entry // messages
	errors   int      // failed calls and turns

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
	"started": "started", "absorbed": "follow-up", "said": "update", "asked": "question", "replied": "answer",
	"notice": "note", "log": "log",
}

// skeletons returns one empty entry of each kind, for the script to fill in.
func skeletons() (list []*entry) {
	for _, kind := range []string{
		"text", "thinking", "tool_use", "tool_result", "started", "absorbed", "said", "asked", "replied", "notice",
	} {
		list = append(list, &entry{Kind: kind, Label: labels[kind]})
	}
	return list
}

func (t *timeline) add(l desk.Logged) {
	e := l.Event
	kind := string(e.Kind)
	switch kind {
	case "taken", "tool_input", "turn_end": // how a run ends is in its outcome or in a note
		return
	case "used":
		t.Used = l
		return
	case "tool_result":
		if call := t.calls[e.ToolID]; call != nil {
			call.Result, call.Done, call.Error, call.Took =
				display.Text(e.Text), true, e.Error, took(e.Time.Sub(call.Time))
			t.fails(e.Error)
			return
		}
	}
	t.does(kind, e.Text)
	t.fails(e.Error && kind != "replied")
	at, known := t.places[e.Parent]
	if !known {
		at.list = &t.Entries
	}
	if n := len(*at.list); n > 0 && (kind == "text" || kind == "thinking") {
		if last := (*at.list)[n-1]; last.Kind == kind {
			last.Text += display.Text(e.Text)
			return
		}
	}
	added := &entry{
		ID: l.ID, Time: e.Time, Kind: kind, Label: labels[kind], Text: strings.TrimLeft(display.Text(e.Text), "\n"),
		Call: e.ToolID, Agent: e.Agent, Input: formatInput(e.Input), Error: e.Error,
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
		if kind == "absorbed" && tasks.ValidID(e.ToolID) {
			added.Task, added.Who = e.ToolID, display.Line(e.Tool)
			if e.Tool != "" { // otherwise it is this task that was absorbed
				t.absorbed = append(t.absorbed, added)
			}
		}
	case "tool_use":
		t.calls[e.ToolID], t.places[e.ToolID] = added, at
		if at.depth < maxDepth {
			t.places[e.ToolID] = place{&added.Below, at.depth + 1}
		}
	}
	*at.list = append(*at.list, added)
}

// does notes what the agent does now.
func (t *timeline) does(kind, text string) {
	switch kind {
	case "thinking":
		t.doing = "Thinking"
	case "text":
		t.doing = "Writing"
	case "tool_use":
		t.doing = display.Line(text)
	}
}

func (t *timeline) fails(failed bool) {
	if failed {
		t.errors++
	}
}

// took formats the duration of a step; short ones have a decimal. static/task.js does the same.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return tasks.Lasted(d)
}

// maxRenders is how many pages of tasks and conversations are rendered at once. Each may take 20 MB, and after a
// restart every open page is requested again.
const maxRenders = 4

// renderSlot waits for permission to render a page with a timeline. It fails if the client gives up first. The slot is
// released before the page is sent: clients may read slowly.
func (c *Console) renderSlot(ctx context.Context) (release func(), err error) {
	select {
	case c.renders <- struct{}{}:
		return func() { <-c.renders }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
