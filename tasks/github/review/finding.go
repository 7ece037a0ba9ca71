package review

import (
	"cmp"
	"slices"
	"strings"
)

// Severity is how bad a finding is, Confidence how sure the agent is of it, Side where in the diff it is, Status what has become of it.
type (
	Severity   string
	Confidence string
	Side       string
	Status     string
)

// The severities, gravest first.
const (
	Critical Severity = "critical"
	Major    Severity = "major"
	Minor    Severity = "minor"
)

// severities lists them in that order.
var severities = []Severity{Critical, Major, Minor}

// Known reports whether it is one of ours.
func (s Severity) Known() bool { return slices.Contains(severities, s) }

// Compare orders severities, the graver first; unknown ones come last.
func (s Severity) Compare(o Severity) int { return cmp.Compare(s.rank(), o.rank()) }

func (s Severity) rank() int {
	if i := slices.Index(severities, s); i >= 0 {
		return i
	}
	return len(severities)
}

// The confidences. What the agent is not sure of is told in the summary only.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// The sides of a diff, in GitHub's words: lines of the new version, and lines that are gone.
const (
	Right Side = "RIGHT"
	Left  Side = "LEFT"
)

// What becomes of a finding, as the ledger keeps it.
const (
	Open      Status = "open"
	Fixed     Status = "fixed"
	Dismissed Status = "dismissed" // a person said no, or resolved the thread
	Outdated  Status = "outdated"  // what it was about is gone
)

// Finding is one thing that is wrong with a change.
type Finding struct {
	// ID is the agent's own word in an Answer, and the ledger's in a Plan, where it is unique within the pull request and stands in
	// the marker of what is posted: [a-z0-9-], at most 40 characters.
	ID         string     `json:"id"`
	Severity   Severity   `json:"severity"`
	Confidence Confidence `json:"confidence,omitempty"`

	Path      string `json:"path,omitempty"` // in the repository; empty: the change as a whole
	Line      int    `json:"line,omitempty"` // the last one, counted from 1; 0: the file as a whole
	StartLine int    `json:"start_line,omitempty"`
	Side      Side   `json:"side,omitempty"` // empty: Right

	Claim      string `json:"claim"` // one sentence
	Evidence   string `json:"evidence,omitempty"`
	Suggestion string `json:"suggestion,omitempty"` // what to write instead of Original, without a fence; empty: none
	Original   string `json:"original,omitempty"`   // the lines as the agent has read them, word for word

	// Exact means that Suggestion replaces exactly the lines the finding stands at, so that a button may do it. Place finds out.
	Exact bool `json:"-"`
}

// Answer is what the agent found.
type Answer struct {
	Findings []Finding `json:"findings"`
	Earlier  []Checked `json:"earlier,omitempty"` // what became of earlier findings it was asked about
	Summary  string    `json:"summary"`           // the whole in a few sentences
}

// Checked is what the agent says of an earlier finding.
type Checked struct {
	ID     string `json:"id"`     // the ledger's, as the brief named it
	Status Status `json:"status"` // Open, Fixed or Outdated
}

// Known is a finding that was posted before, as the ledger remembers it.
type Known struct {
	Finding
	Status  Status `json:"status"`
	Thread  string `json:"thread,omitempty"`  // node ID of its review thread; empty: it is in the summary only
	Comment int64  `json:"comment,omitempty"` // ID of the comment that began the thread
	First   string `json:"first,omitempty"`   // head it was found in
	// Answered: somebody has replied, so it is not brought up again, but its thread is still resolved when it is mended.
	Answered bool   `json:"answered,omitempty"`
	Last     string `json:"last,omitempty"` // head it was last seen in, or fixed in
}

// Plan is what a review says, after the ledger has taken out what was said before. All lists have the gravest first.
type Plan struct {
	// Inline are the new findings that are to stand at their lines, and Summary those that are not. The ledger puts all that is new into
	// Inline; Place, which knows the diff, moves on what cannot stay there.
	Inline, Summary []Finding
	Fixed           []Known // since the last review
	Gone            []Known // since then what they were about has left the change; their threads end, and the summary does not name them
	StillOpen       []Known // found before, told before, not mended
	Below           int     // new findings that are not told, because they are below the floor; Place counts them
}

// Gravest orders findings for people: the gravest first, then by place.
func Gravest(all []Finding) {
	slices.SortStableFunc(all, gravest)
}

func gravest(a, b Finding) int {
	return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}
