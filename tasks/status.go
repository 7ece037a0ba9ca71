package tasks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks/internal/scope"
)

// Status describes a task at one moment.
type Status struct {
	Task     Task      `json:"task"`
	Person   string    `json:"person,omitempty"`   // the asker's configured name; see People
	State    string    `json:"state"`              // waiting, running, absorbed, ended
	Into     string    `json:"into,omitempty"`     // the task whose run absorbed this one and has its log and answer
	Pool     string    `json:"pool,omitempty"`     // whose workers run it; empty: the default one
	Position int       `json:"position,omitempty"` // in line for a limit; else tasks of its thread before it
	Attempt  int       `json:"attempt"`
	Delivery string    `json:"delivery"` // the asynq ID of its latest delivery
	Worker   string    `json:"worker,omitempty"`
	Runs     []Run     `json:"runs,omitempty"` // the latest since it was last retried, oldest first
	Created  time.Time `json:"created"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Retried  time.Time `json:"retried,omitzero"`    // when it was last retried
	At       time.Time `json:"not_before,omitzero"` // the earliest start of a waiting task
	Why      string    `json:"why,omitempty"`       // why it waits, as a clause; also set while a run starts
	Blocked  Blocked   `json:"-"`                   // the same for the console
	Cancel   string    `json:"cancelled_by,omitempty"`
	Ending   *Ending   `json:"ending,omitempty"`
	CostUSD  float64   `json:"cost_usd,omitempty"` // of all runs that are settled, also those before a retry
	Settled  bool      `json:"-"`                  // CostUSD has that of the latest run

	Questions []Question `json:"questions,omitempty"` // open questions of a running task
	Posted    bool       `json:"posted"`              // the final message was posted
	Unposted  string     `json:"unposted,omitempty"`  // that and why people do not have it in its place, as a clause
	Votes     []Vote     `json:"votes,omitempty"`     // on the answer; not in lists

	Unreadable string `json:"unreadable,omitempty"` // why the record cannot be read, and a remedy; also in the prompt
}

// Run is one of the runs of a task.
type Run struct {
	Worker  string    `json:"worker"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero: it goes on or gave the task its ending
	Why     string    `json:"why,omitempty"`  // why the task waited again, as a clause
}

// Blocked says why a task could not be claimed.
type Blocked struct {
	Scope string // the scope that is full; empty if the thread is busy
	Runs  int    // in that scope
	Max   int    // the cap of that scope
	Place int    // place in the scope's line, from 1, oldest first; without a scope, the thread's tasks ahead
}

// Name returns the name of the person who asked for the task: the configured one, the source's or the account.
func (s Status) Name() string { return cmp.Or(s.Person, s.Task.Name, s.Task.Actor) }

// Spent returns the known cost of the task. An absorbed one has that of the run that absorbed it.
func (s Status) Spent() float64 {
	if s.Ending == nil {
		return s.CostUSD
	}
	return max(s.CostUSD, s.Ending.CostUSD())
}

// States that the words for a task depend on, as the store names them.
const (
	waiting = "waiting"
	running = "running"
)

// Stopping reports whether the task's run has been cancelled and has not ended yet.
func (s Status) Stopping() bool {
	return s.Ending == nil && s.Cancel != "" && (s.State == running || s.Into != "")
}

// NoWorker is the reason of a waiting task that no worker has claimed or postponed yet.
const NoWorker = "no worker is free yet"

// BlockedBy explains, as a clause, why a task could not be claimed.
func BlockedBy(b Blocked) string {
	switch {
	case b.Scope != "":
		return fmt.Sprintf("%s in line; %d of %d runs busy %s", ordinal(b.Place), b.Runs, b.Max, inScopeOf(b.Scope))
	case b.Place <= 1:
		return "an earlier task of this thread is running"
	}
	return fmt.Sprintf("%d tasks of this thread come first", b.Place)
}

// ordinal formats a place, such as 2nd.
func ordinal(n int) string {
	suffix := "th"
	if last := n % 10; last < 4 && n/10%10 != 1 {
		suffix = []string{"th", "st", "nd", "rd"}[last]
	}
	return fmt.Sprint(n, suffix)
}

// inScopeOf names a scope for people.
func inScopeOf(full string) string {
	if repo, ok := strings.CutPrefix(full, scope.Repository); ok {
		return "in " + repo
	}
	return "for the same person"
}

// Headline returns the state at the given time.
func (s Status) Headline(now time.Time) Headline {
	h := Headline{Sign: underWay, State: Working}
	switch {
	case s.Ending != nil:
		h = s.Ending.Headline()
		if s.Unposted != "" {
			h.Detail = strings.TrimPrefix(h.Detail+"; "+s.Unposted, "; ")
		}
		return h
	case s.Stopping():
		h.State = Stopping
	case s.Into != "":
		h.Detail = "together with an earlier message of its thread"
	case s.State == waiting:
		return WaitingHeadline(s.Why, s.At, now)
	case len(s.Questions) > 0:
		h.Sign, h.State, h.Detail, h.Until = "💬", NeedsAnswer, firstLine(s.Questions[0].Text), s.Questions[0].Until
	case s.Why != "":
		h.State, h.Detail = Starting, s.Why
	}
	return h
}

// Vote is a person's rating of a task's answer.
type Vote struct {
	Person string `json:"person"`           // the configured name, the source's, or the account
	Vote   string `json:"vote"`             // good or bad
	Reason string `json:"reason,omitempty"` // of a bad one
}
