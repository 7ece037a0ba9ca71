package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// teller prints what happens to a task. What the agent thinks and what its tools print is in the log.
type teller struct {
	screen *term.Screen
	side   *term.Out // where the screen's lines go
	id     string
	stamps bool // lines begin with the time
	text   bool // what was printed last is text
}

// tell prints an event.
func (t *teller) tell(e agent.Event) {
	switch e.Kind {
	case agent.Text:
		if e.Parent == "" { // what sub-agents say is for the agent
			t.piece(legible.Text(e.Text))
		}
	case agent.ToolUse:
		t.short(e, term.Dim, "· "+e.Text)
	case agent.ToolResult:
		if e.Error {
			t.short(e, term.Red, "✗ "+cmp.Or(legible.Line(e.Text), "it failed"))
		}
	case agent.Started:
		t.short(e, term.Dim, "— started, "+e.Text)
	case agent.Notice:
		t.line(e, term.Yellow, "! "+e.Text)
	case tasks.Said:
		t.line(e, term.Bold, "» "+e.Text)
	case tasks.Asked:
		t.question(e)
	case tasks.Replied:
		t.line(e, term.Bold, "! "+cmp.Or(e.Text, "nobody answered; the agent decides by itself"))
	case tasks.Absorbed:
		t.line(e, term.Bold, "+ "+e.Text)
	case agent.TurnEnd:
		t.screen.Newline()
	}
}

// piece prints text. Where a new one begins, the CLI sends any number of empty lines: one is enough, and none at the very beginning.
func (t *teller) piece(s string) {
	if !t.text {
		trimmed := strings.TrimLeft(s, "\n")
		switch {
		case trimmed == "":
			return
		case trimmed != s && t.screen.Said():
			trimmed = "\n" + trimmed
		}
		s = trimmed
	}
	t.text = true
	t.screen.Text(s)
}

func (t *teller) print(line string) {
	t.text = false
	t.screen.Line(line)
}

// question is asked with what to type for an answer.
func (t *teller) question(e agent.Event) {
	var q tasks.Question
	_ = json.Unmarshal(e.Input, &q) // without it the words alone are told, and the only open question is answered
	t.line(e, term.Bold, "? "+e.Text)
	for _, line := range answers(t.id, q) {
		t.print(line)
	}
}

// answers say how a question of a task can be answered.
func answers(id string, q tasks.Question) (lines []string) {
	for i, o := range q.Options {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, legible.Line(o)))
	}
	key := ""
	if q.Key != "" {
		key = "-question " + q.Key + " "
	}
	return append(lines, "  answer with: enqueue answer "+legible.Line(key+id)+" YOUR WORDS")
}

// line prints all of what there is to say.
func (t *teller) line(e agent.Event, style term.Style, s string) {
	t.print(t.stamp(e) + t.side.Paint(style, strings.TrimSpace(legible.Text(s))))
}

// short prints what is one line, whatever is in it: on a terminal no longer than that is wide. Sub-agents are indented.
func (t *teller) short(e agent.Event, style term.Style, s string) {
	before, columns := t.stamp(e), t.side.Width()
	if t.stamps {
		columns -= len("15:04:05 ")
	}
	if e.Parent != "" {
		before, columns = before+"  ", columns-2
	}
	t.print(before + t.side.Paint(style, term.Cut(legible.Line(s), columns)))
}

func (t *teller) stamp(e agent.Event) string {
	if !t.stamps {
		return ""
	}
	return t.side.Paint(term.Dim, e.Time.Local().Format(time.TimeOnly)) + " "
}

// end tells how a task ended; the answer itself only when nothing was said before.
func (t *teller) end(v task) {
	e := v.Ending
	if !t.screen.Said() {
		t.screen.Text(legible.Text(indented(e.Said())))
	}
	t.screen.Status("")
	style, words := term.Red, v.state()
	if e.Kind == tasks.Answered {
		style = term.Green
	}
	if facts := e.Footer(); facts != "" {
		words += " · " + facts
	}
	t.print(t.side.Paint(style, legible.Line(words)))
	for _, more := range []string{v.Sentence, e.Note()} {
		if more != "" {
			t.print(legible.Text(more))
		}
	}
}

// progress is what the status line tells: how long, how much, and what now.
type progress struct {
	asked   time.Time // by our clock
	started time.Time // by that of the fleet; zero: it waits
	tokens  int64
	usd     float64
	now     string // what the agent does, unless it uses tools
	calls   []call // tools that are at work, in the order in which they began
}

type call struct{ id, words string }

func (p *progress) note(e agent.Event) {
	switch e.Kind {
	case agent.Started, tasks.Absorbed:
		if e.Kind == tasks.Absorbed && e.Tool != "" {
			return // a further request, in a run that goes on
		}
		if p.started.IsZero() {
			p.started = e.Time
		}
		p.calls = nil // of a run before
		p.now = "thinking"
	case agent.Thinking:
		p.now = "thinking"
	case agent.Text:
		p.now = "writing"
	case agent.ToolUse:
		p.calls = append(p.calls, call{e.ToolID, legible.Line(e.Text)})
	case agent.ToolResult:
		p.calls = slices.DeleteFunc(p.calls, func(c call) bool { return c.id == e.ToolID })
		p.now = "thinking"
	case agent.TurnEnd:
		p.calls, p.now = nil, ""
	case tasks.Asked:
		p.now = "waiting for an answer"
	case tasks.Replied:
		p.now = "thinking"
	case agent.Used:
		p.usd = e.CostUSD
		if u := e.Usage; u != nil {
			p.tokens = u.Input + u.Output + u.CacheRead + u.CacheCreation
		}
	}
}

// line is what there is to tell at a moment.
func (p *progress) line(at time.Time) string {
	if p.started.IsZero() {
		return "waiting · " + tasks.Lasted(at.Sub(p.asked))
	}
	parts := []string{tasks.Lasted(max(0, at.Sub(p.started)))} // the clocks of two machines differ
	if p.tokens > 0 {
		parts = append(parts, legible.Count(p.tokens)+" tokens", fmt.Sprintf("$%.2f", p.usd))
	}
	doing := p.now
	if n := len(p.calls); n > 0 {
		doing = p.calls[n-1].words
		if n > 1 {
			doing = fmt.Sprintf("%d tools: %s", n, doing)
		}
	}
	if doing != "" {
		parts = append(parts, doing)
	}
	return strings.Join(parts, " · ")
}
