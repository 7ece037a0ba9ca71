package agent

import (
	"cmp"
	"time"
)

// State is what a run is doing.
type State string

// The states of a run.
const (
	Starting State = "starting" // the CLI has not answered yet
	Working  State = "working"  // the model is asked, or thinks
	InTool   State = "tool"     // a tool call is open
	Asking   State = "asking"   // the agent waits for the Host
	Idle     State = "idle"     // nothing is left to do, and the Host is asked for more
	Stopping State = "stopping" // the run has to end
)

// Status is a look at a live run.
type Status struct {
	ID      string    `json:"id"`
	State   State     `json:"state"`
	Action  string    `json:"action,omitempty"` // what the agent does, in words, redacted
	PID     int       `json:"pid"`              // of the run's keeper, or of the sandbox around that
	Model   string    `json:"model,omitempty"`
	Session string    `json:"session,omitempty"`
	Turns   int       `json:"turns"`
	CostUSD float64   `json:"cost_usd"` // so far, as of the latest end of a turn, an earlier part of the conversation included
	Started time.Time `json:"started"`
	Active  time.Time `json:"active"` // the latest sign of work
}

// Runs looks at all live runs, in no particular order.
func (r *Runner) Runs() []Status {
	var all []Status
	r.live.Range(func(_, l any) bool {
		if run := l.(*live); run != nil { // else it is about to start
			all = append(all, run.status())
		}
		return true
	})
	return all
}

// status may be called from any goroutine.
func (l *live) status() Status {
	c, asking := l.stream.Clock(), l.control.Open() > 0
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	f := &l.stream.facts
	s := Status{
		ID: l.spec.ID, State: Working, PID: l.child.PID(), Model: cmp.Or(f.Answered, f.Model), Session: f.Session, Turns: f.Turns,
		Started: l.started, Active: c.Active,
	}
	if f.Last != nil {
		s.CostUSD = f.Last.CostUSD
	}
	for _, words := range l.stream.tools {
		s.Action = l.r.cfg.Redactor.String(words)
	}
	switch {
	case l.ctx.Err() != nil:
		s.State = Stopping
	case !l.greeted.Load():
		s.State = Starting
	case asking:
		s.State = Asking
	case !c.Turn:
		s.State = Idle
	case c.Tool:
		s.State = InTool
	}
	return s
}
