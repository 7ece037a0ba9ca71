package review

import (
	"cmp"
	"slices"
	"strings"
)

// Severity is how bad a finding is, Confidence how sure the agent is, Side which version of the diff it is in, and
// Status its current state.
type (
	Severity   string
	Confidence string
	Side       string
	Status     string
)

// The severities, most serious first.
const (
	Critical Severity = "critical"
	Major    Severity = "major"
	Minor    Severity = "minor"
)

// severities lists the severities in that order.
var severities = []Severity{Critical, Major, Minor}

// Known reports whether a severity is one of the above.
func (s Severity) Known() bool { return slices.Contains(severities, s) }

// Compare orders severities, the more serious first and unknown ones last.
func (s Severity) Compare(o Severity) int { return cmp.Compare(s.rank(), o.rank()) }

func (s Severity) rank() int {
	if i := slices.Index(severities, s); i >= 0 {
		return i
	}
	return len(severities)
}

// The confidences. Findings with low confidence appear only in the summary.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// The sides of a diff, in GitHub's words: lines of the new version, and deleted lines.
const (
	Right Side = "RIGHT"
	Left  Side = "LEFT"
)

// The states of a finding in the ledger.
const (
	Open      Status = "open"
	Fixed     Status = "fixed"
	Dismissed Status = "dismissed" // a person dismissed it, or resolved the thread
	Outdated  Status = "outdated"  // the code it was about is gone
)

// Finding is one problem with a change.
type Finding struct {
	// ID is chosen by the agent in an Answer and by the ledger in a Plan. The ledger's ID is unique within the pull
	// request and is part of the posted marker: [a-z0-9-], at most 40 characters.
	ID         string     `json:"id"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence,omitempty"`

	Path      string `json:"path,omitempty"` // in the repository; empty: the change as a whole
	Line      int    `json:"line,omitempty"` // the last one, counted from 1; 0: the file as a whole
	StartLine int    `json:"start_line,omitempty"`
	Side      Side   `json:"side,omitempty"` // empty: Right

	Claim      string `json:"claim"` // one sentence
	Evidence   string `json:"evidence,omitempty"`
	Suggestion string `json:"suggestion,omitempty"` // replaces Original, without a fence; empty: none
	Original   string `json:"original,omitempty"`   // the lines as the agent read them, verbatim

	// Exact means that Suggestion replaces exactly the finding's lines, so that a button may apply it. Place sets it.
	Exact bool `json:"-"`
}

// Answer is the result of the agent's review.
type Answer struct {
	Findings []Finding `json:"findings"`
	Earlier  []Checked `json:"earlier,omitempty"` // the earlier findings it was asked to check
	Summary  string    `json:"summary"`           // of the result, in a few sentences
}

// Checked is the agent's verdict on an earlier finding.
type Checked struct {
	ID     string `json:"id"`     // the ledger's, as the brief named it
	Status Status `json:"status"` // Open, Fixed or Outdated
}

// Known is a finding that was posted before, as the ledger remembers it.
type Known struct {
	Finding
	Status  Status `json:"status"`
	Thread  string `json:"thread,omitempty"`  // node ID of its review thread; empty: it is in the summary only
	Comment int64  `json:"comment,omitempty"` // ID of the comment that started the thread
	First   string `json:"first,omitempty"`   // head it was found in
	// Answered: a person has replied. The finding is not raised again, but its thread is still resolved when it is fixed.
	Answered bool   `json:"answered,omitempty"`
	Last     string `json:"last,omitempty"` // head it was last seen in, or fixed in
}

// Plan is the content of a review, without what was said before. All lists have the most serious finding first.
type Plan struct {
	// Inline are the new findings for lines of the diff, and Summary those without a line. The ledger puts all new
	// findings into Inline; Place, which knows the diff, moves those that cannot stay there.
	Inline, Summary []Finding
	Fixed           []Known // since the last review
	Gone            []Known // their code has left the change since then; their threads end, and the summary omits them
	StillOpen       []Known // found and posted before, not fixed
	Below           int     // new findings that are omitted because they are below the floor; counted by Place
}

// Gravest sorts findings for people: the most serious first, then by place.
func Gravest(all []Finding) {
	slices.SortStableFunc(all, gravest)
}

func gravest(a, b Finding) int {
	return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}
