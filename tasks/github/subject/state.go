package subject

import (
	"strings"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Limits of automatic reviews and automatic work on a pull request until a person writes.
const (
	MaxReviews = 5
	MaxRounds  = 5
)

// LimitReached is posted when a limit is reached.
const LimitReached = "I have reached the limit of automatic work on this pull request. To continue, mention me with " +
	"a request, or comment `/resume`."

// maxBegun bounds the recorded automatic work on one pull request. It is far more than MaxRounds allows, unless people
// resume the work for months; by then the oldest keys are of heads long gone.
const maxBegun = 500

// State is the state of a pull request or an issue that all processes share between its tasks. Only
// Memory.ChangeState changes it.
type State struct {
	Paused    bool      `json:"paused,omitempty"` // a person has stopped automatic work
	PausedBy  string    `json:"paused_by,omitempty"`
	CommandAt time.Time `json:"said,omitzero"` // time of the last pause or resume command

	// AnsweredUntil is the time of the newest answered comment, LastAnswered. All before it were read with it.
	AnsweredUntil time.Time   `json:"answered_until,omitzero"`
	LastAnswered  thread.Spot `json:"last_answered,omitzero"`
	Stranger      bool        `json:"stranger,omitempty"` // a person without access was informed

	Commands []string `json:"obeyed,omitempty"` // task IDs of the newest comments whose commands ran

	// Settled has the task IDs of the newest comments that become no task any more: their deletion may be interpreted
	// before them, and an edit after them.
	Settled []string `json:"deleted,omitempty"`
	Stopped string   `json:"stopped,omitempty"` // what the last comment that stops everything would be as a task

	Head   string    `json:"head,omitempty"`   // the newest known one
	Base   string    `json:"base,omitempty"`   // the branch that Head is compared with
	At     time.Time `json:"at,omitzero"`      // when GitHub last changed it; older events are ignored
	Review string    `json:"review,omitempty"` // the task that reviews Head with Base, or ""
	// Briefed is the base that a review was briefed with.
	Briefed BriefedBase `json:"briefed,omitzero"`

	Reviews      int         `json:"reviews,omitempty"`       // automatic reviews so far
	LastReviewed string      `json:"last_reviewed,omitempty"` // last reviewed head, or a later one with its changes
	LastBase     string      `json:"last_base,omitempty"`     // the base of LastReviewed
	ReviewedBy   string      `json:"reviewed_by,omitempty"`   // the task of that review
	Verdict      hub.Verdict `json:"verdict,omitzero"`        // what that review's indicator shows

	// Patches has the changes of LastReviewed and Head as patchID gives them, by version.
	Patches map[string]string `json:"patches,omitempty"`

	Rounds int               `json:"rounds,omitempty"` // automatic tasks since a person wrote
	Begun  map[string]string `json:"begun,omitempty"`  // the tasks of automatic work, by key

	// Started is when work on a whole issue, or by label the review of a fork, was requested last.
	Started time.Time `json:"started,omitzero"`
	Label   string    `json:"label,omitempty"` // the head of a fork that the label was for, and who gave it
	Plans   Plans     `json:"plans,omitempty"` // of an issue

	Status IssueStatus `json:"status,omitzero"` // of an issue

	Approved   string `json:"approved,omitempty"` // head of a fork that a maintainer has approved
	ApprovedBy string `json:"approved_by,omitempty"`
}

// BriefedBase is the base that a task was briefed with.
type BriefedBase struct {
	Task string `json:"task"`
	Base string `json:"base"`
}

// IsAt reports whether the newest known state of a pull request is that of o.
func (p *State) IsAt(o Origin) bool { return p.Head == o.Head && p.Base == o.Base }

// MoveTo records the state of o. If it is another one, no task reviews it.
func (p *State) MoveTo(o Origin) {
	if !p.IsAt(o) {
		p.Review = ""
	}
	p.Head, p.Base = o.Head, o.Base
}

// HasReviewed reports whether the state of o was the last to be reviewed.
func (p *State) HasReviewed(o Origin) bool {
	return p.LastReviewed == o.Head && p.LastBase == o.Base
}

// Version is the key of what a review depends on: a head and the branch that it is compared with. A push to that branch
// gives no other version, because it starts no review.
func Version(head, base string) string { return strings.TrimSpace(head + " " + base) }

// Begin assigns the work with this key to a task, unless another task has it, and reports whether the task has it now.
// A second call changes nothing.
func (p *State) Begin(key, task string) bool {
	if p.Begun[key] == "" {
		p.TakeOver(key, task)
	}
	return p.Begun[key] == task
}

// TakeOver assigns the work with this key to a task, even if another task has it.
func (p *State) TakeOver(key, task string) {
	if p.Begun == nil || len(p.Begun) >= maxBegun {
		p.Begun = map[string]string{}
	}
	p.Begun[key] = task
}

// AutomationBlocked returns the reason why no more automatic work is done, or "".
func (p *State) AutomationBlocked() string {
	switch {
	case p.Paused:
		return "The pull request was paused by " + p.PausedBy + "."
	case p.Rounds >= MaxRounds:
		return LimitReached
	}
	return ""
}

// once records the task under key, or returns why it must not run.
func (p *State) once(key, task string) (why string) {
	if p.Begun[key] == task {
		return "" // the task is briefed again
	}
	why = p.AutomationBlocked()
	if why == LimitReached && !p.Begin(LimitReached, task) {
		return "A person has already been asked to continue."
	}
	if why != "" {
		return why
	}
	if !p.Begin(key, task) {
		return "This was already handled."
	}
	p.Rounds++
	return ""
}

func (p *State) ResetRounds() {
	p.Rounds = 0
	delete(p.Begun, LimitReached)
}

// RecordCommandTime records the time of a pause or resume command, and reports whether it is the latest: an event may
// arrive late.
func (p *State) RecordCommandTime(at time.Time) bool {
	if at.Before(p.CommandAt) {
		return false
	}
	p.CommandAt = at
	return true
}
