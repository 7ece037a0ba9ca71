package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

// eventPrinter prints a task's events. It leaves out the agent's thinking and the output of its tools, which are in the
// log.
type eventPrinter struct {
	screen     *term.Screen
	side       *term.Out // the screen's side stream
	task       string    // its ID, for people
	timestamps bool      // lines begin with the time
	inText     bool      // the last thing printed was text
}

// event prints an event.
func (p *eventPrinter) event(e event) {
	switch e.Kind {
	case "text":
		if e.Parent == "" { // a sub-agent's text is for the agent
			p.text(display.Text(e.Text))
		}
	case "tool_use":
		p.short(e, term.Dim, "· "+e.Text)
	case "tool_result":
		if e.Error {
			p.short(e, term.Red, "✗ "+cmp.Or(display.Line(e.Text), "failed"))
		}
	case "started":
		p.short(e, term.Dim, "— started, "+e.Text)
	case "notice":
		p.full(e, term.Yellow, "! "+e.Text)
	case "said":
		p.full(e, term.Bold, "» "+e.Text)
	case "asked":
		p.question(e)
	case "replied":
		p.full(e, term.Bold, "! "+cmp.Or(e.Text, "no answer; the agent decides"))
	case "absorbed":
		p.full(e, term.Bold, "+ "+e.Text)
	case "turn_end":
		p.screen.Newline()
	}
}

// text prints text. The CLI begins a block of text with any number of empty lines; print at most one, and none at the
// very beginning.
func (p *eventPrinter) text(s string) {
	if !p.inText {
		trimmed := strings.TrimLeft(s, "\n")
		switch {
		case trimmed == "":
			return
		case trimmed != s && p.screen.Printed():
			trimmed = "\n" + trimmed
		}
		s = trimmed
	}
	p.inText = true
	p.screen.Text(s)
}

func (p *eventPrinter) line(line string) {
	p.inText = false
	p.screen.Line(line)
}

// question prints a question and the command that answers it.
func (p *eventPrinter) question(e event) {
	var q question
	_ = json.Unmarshal(e.Input, &q) // without a key, the answer goes to the only open question
	p.full(e, term.Bold, "? "+e.Text)
	for _, line := range answerHelp(p.task, q) {
		p.line(line)
	}
}

// answerHelp returns the options of a question and the command that answers it.
func answerHelp(id string, q question) (lines []string) {
	for i, o := range q.Options {
		lines = append(lines, fmt.Sprintf("  %d. %s", i+1, display.Line(o)))
	}
	key := ""
	if q.Key != "" {
		key = "--question " + q.Key + " "
	}
	return append(lines, "  answer with: enqueue answer "+display.Line(key+id)+" YOUR WORDS")
}

// full prints the whole text of an event.
func (p *eventPrinter) full(e event, style term.Style, s string) {
	p.line(p.timestamp(e) + p.side.Paint(style, strings.TrimSpace(display.Text(s))))
}

// short prints an event as one line of the terminal. Events of sub-agents are indented.
func (p *eventPrinter) short(e event, style term.Style, s string) {
	prefix, columns := p.timestamp(e), p.side.Width()
	if p.timestamps {
		columns -= len("15:04:05 ")
	}
	if e.Parent != "" {
		prefix, columns = prefix+"  ", columns-2
	}
	p.line(prefix + p.side.Paint(style, term.Cut(display.Line(s), columns)))
}

func (p *eventPrinter) timestamp(e event) string {
	if !p.timestamps {
		return ""
	}
	return p.side.Paint(term.Dim, e.Time.Local().Format(time.TimeOnly)) + " "
}

// end prints how a task ended. It prints the answer itself only if no text was printed before.
func (p *eventPrinter) end(v task) {
	e := v.Ending
	if !p.screen.Printed() {
		p.screen.Text(v.answer())
	}
	p.screen.Status("")
	style, words := term.Red, v.state()
	if e.Kind == "answered" {
		style = term.Green
	}
	if v.Footer != "" {
		words += " · " + v.Footer
	}
	p.line(p.side.Paint(style, display.Line(words)))
	for _, more := range append([]string{v.comment()}, v.Notes...) {
		if more != "" {
			p.line(display.Text(more))
		}
	}
}

// indentJSON indents an answer that is JSON. It returns any other answer unchanged.
func indentJSON(answer string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(answer), "", "  ") != nil {
		return answer
	}
	return b.String()
}

// progress is the content of the status line: elapsed time, usage and current activity.
type progress struct {
	submitted time.Time // by the local clock
	started   time.Time // by the fleet's clock; zero while the task waits
	tokens    int64
	usd       float64
	activity  string     // when no tool is running
	tools     []toolCall // running tools, oldest first
}

type toolCall struct{ id, text string }

func (p *progress) update(e event) {
	switch e.Kind {
	case "started", "absorbed":
		if e.Kind == "absorbed" && e.Tool != "" {
			return // the run absorbed another task
		}
		if p.started.IsZero() {
			p.started = e.Time
		}
		p.tools, p.activity = nil, "thinking" // the tools of an earlier run are gone
	case "thinking", "replied":
		p.activity = "thinking"
	case "text":
		p.activity = "writing"
	case "tool_use":
		p.tools = append(p.tools, toolCall{e.ToolID, display.Line(e.Text)})
	case "tool_result":
		p.tools = slices.DeleteFunc(p.tools, func(c toolCall) bool { return c.id == e.ToolID })
		p.activity = "thinking"
	case "turn_end":
		p.tools, p.activity = nil, ""
	case "asked":
		p.activity = "waiting for an answer"
	case "used":
		p.usd = e.CostUSD
		p.tokens = e.Usage.Input + e.Usage.CacheRead + e.Usage.CacheCreation + e.Usage.Output
	}
}

// line returns the status line.
func (p *progress) line(now time.Time) string {
	if p.started.IsZero() {
		return "waiting · " + display.Lasted(now.Sub(p.submitted))
	}
	parts := []string{display.Lasted(max(0, now.Sub(p.started)))} // the two clocks may differ
	if p.tokens > 0 {
		parts = append(parts, display.Count(p.tokens)+" tokens", display.Dollars(p.usd))
	}
	activity := p.activity
	if n := len(p.tools); n > 0 {
		activity = p.tools[n-1].text
		if n > 1 {
			activity = fmt.Sprintf("%d tools: %s", n, activity)
		}
	}
	if activity != "" {
		parts = append(parts, activity)
	}
	return strings.Join(parts, " · ")
}

// table is a table that fits the terminal: on a narrow one it leaves out less important columns.
type table struct {
	columns []column
	spare   []string // names of columns that may be left out, the first one first
	prose   bool     // the last column may be cut; if that is not enough, the first column moves to a separate line
}

// column is a column of a table. Its first cell is its name.
type column struct {
	cells []string
	width int
	style func(row int) term.Style // nil: plain; rows count from 0
}

func newTable(names ...string) *table {
	t := &table{columns: make([]column, len(names))}
	t.add(names...)
	return t
}

// add adds a row and sanitizes its cells.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		c := &t.columns[i]
		cell = display.Line(cell)
		c.cells, c.width = append(c.cells, cell), max(c.width, term.Cells(cell))
	}
}

// print prints the table, if possible with one terminal line per row.
func (t *table) print(out *term.Out) {
	columns, split := t.columns, false
	if width := out.Width(); width > 0 {
		var fits bool
		if columns, fits = t.fit(t.columns, width); !fits && t.prose {
			columns, _ = t.fit(t.columns[1:], width-2)
			columns, split = append([]column{t.columns[0]}, columns...), true
		}
	}
	for row := range columns[0].cells {
		var line strings.Builder
		for i, c := range columns {
			cell, style := c.cells[row], term.Dim
			switch last := i == len(columns)-1; {
			case last && t.prose && out.TTY():
				cell = term.Cut(cell, c.width)
			case !last && (i > 0 || !split):
				cell = term.Pad(cell, c.width)
			}
			if row > 0 {
				style = term.Plain
				if c.style != nil {
					style = c.style(row - 1)
				}
			}
			switch {
			case i == 1 && split:
				line.WriteString("\n  ")
			case i > 0:
				line.WriteString("  ")
			}
			line.WriteString(out.Paint(style, cell))
		}
		printf(out, "%s\n", strings.TrimRight(line.String(), " "))
	}
}

// minProse is the minimum width of the last column.
const minProse = 20

// fit leaves out columns until the rest fits, and reports whether it does.
func (t *table) fit(all []column, width int) (columns []column, fits bool) {
	columns = slices.Clone(all)
	left := func() int { // width for the last column
		n := width
		for _, c := range columns[:len(columns)-1] {
			n -= c.width + 2
		}
		return n
	}
	need := func() int {
		n := columns[len(columns)-1].width
		if t.prose {
			n = min(n, minProse)
		}
		return n
	}
	for _, name := range t.spare {
		if left() >= need() {
			break
		}
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.cells[0] == name })
	}
	fits = left() >= need()
	if last := &columns[len(columns)-1]; t.prose {
		last.width = max(1, min(last.width, left()))
	}
	return columns, fits
}
