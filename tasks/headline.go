package tasks

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Headline is the state of a task in one line. The console, Slack and GitHub show the same.
type Headline struct {
	Sign   string    `json:"-"`                // an emoji
	State  string    `json:"state"`            // in words, such as "Waiting" or "Done"
	Detail string    `json:"detail,omitempty"` // why it waits, what it asks or what came of it
	Until  time.Time `json:"until,omitzero"`   // when it continues or, if it needs an answer, by when; zero: unknown
}

// The words for tasks that have not ended. [EndingInfo] has those for the others.
const (
	Waiting     = "Waiting"
	Paused      = "Paused"
	Starting    = "Starting"
	Working     = "Working"
	NeedsAnswer = "Needs your answer"
	Stopping    = "Stopping"
)

// underWay is the sign of a task that has not ended.
const underWay = "⏳"

// WaitingHeadline returns the headline of a task that waits for a reason, and cannot start before at.
func WaitingHeadline(why string, at, now time.Time) Headline {
	h := Headline{Sign: underWay, State: Waiting, Detail: why}
	if at.After(now.Add(soon)) {
		h.Until = at
		if h.State = Paused; why == NoWorker { // it has a start time
			h.State, h.Detail = Waiting, ""
		}
	}
	return h
}

// QueuedHeadline returns the headline of a task that comes after that many others of its thread.
func QueuedHeadline(position int) Headline {
	return WaitingHeadline(BlockedBy(Blocked{Place: position}), time.Time{}, time.Time{})
}

// soon is when a task that waits is merely tried again.
const soon = time.Minute

// Headline says how the task ended and what came of it.
func (e Ending) Headline() Headline {
	info := e.Kind.Info()
	h := Headline{Sign: info.Sign, State: info.Title}
	var parts []string
	for i, p := range e.Publications() {
		switch {
		case p.PullRequest.Number > 0 && i == 0:
			parts = append(parts, fmt.Sprintf("PR #%d", p.PullRequest.Number))
		case p.PullRequest.Number > 0:
			parts = append(parts, "PR "+p.Name())
		case p.Branch != "":
			parts = append(parts, "branch "+p.Branch)
		}
		if changed := e.Changed.String(); changed != "" && p == e.Published { // it counts only the main repository
			parts = append(parts, changed)
		}
	}
	if e.Kind == Cancelled && e.By != "" {
		parts = append(parts, e.stopper())
	}
	h.Detail = strings.Join(parts, ", ")
	return h
}

// Continues reports whether the detail continues the state, as in "Stopped by Ann".
func (h Headline) Continues() bool {
	return h.Detail == inConsole || strings.HasPrefix(h.Detail, "by ")
}

// Text returns the headline as a clause without its sign. moment formats Until for the reader, after a preposition.
func (h Headline) Text(moment func(preposition string, at time.Time) string) string {
	when := ""
	switch {
	case h.Until.IsZero():
	case h.State == NeedsAnswer:
		when = moment("until ", h.Until)
	case h.State == Paused:
		when = moment("resumes about ", h.Until)
	default:
		when = moment("starts about ", h.Until)
	}
	rest := slices.DeleteFunc([]string{h.Detail, when}, func(s string) bool { return s == "" })
	if len(rest) == 0 {
		return h.State
	}
	separator := ": "
	if h.Continues() {
		separator = " "
	}
	return h.State + separator + strings.Join(rest, "; ")
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
