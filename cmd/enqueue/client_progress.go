package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

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
