package findings

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
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

// Label returns the word in bold after a symbol that is seen before it is read.
func (s Severity) Label() string {
	symbol := map[Severity]string{Critical: "🔴", Major: "🟠", Minor: "🟡"}[s]
	return strings.TrimSpace(symbol + " **" + string(s) + "**")
}

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
	Kind       Kind       `json:"kind,omitempty"` // empty: OtherKind

	Path      string `json:"path,omitempty"` // in the repository; "" for the change as a whole
	Line      int    `json:"line,omitempty"` // the last one, counted from 1; 0 for the file as a whole
	StartLine int    `json:"start_line,omitempty"`
	Side      Side   `json:"side,omitempty"` // empty: Right

	Claim      string `json:"claim"` // one sentence
	Evidence   string `json:"evidence,omitempty"`
	Suggestion string `json:"suggestion,omitempty"` // replaces Original, without a fence; "" for none
	Original   string `json:"original,omitempty"`   // the lines as the agent read them, verbatim, or the last of them

	// Verdict is that of a second look, "" without one, and Reason is why, in one sentence.
	Verdict Verdict `json:"verdict,omitempty"`
	Reason  string  `json:"reason,omitempty"`

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
	Thread  string `json:"thread,omitempty"`  // node ID of its review thread; "" if it is in the summary only
	Comment int64  `json:"comment,omitempty"` // ID of the comment that started the thread
	// Answered: a person has replied. The finding is not raised again, but its thread is still resolved when it is
	// fixed.
	Answered bool   `json:"answered,omitempty"`
	Last     string `json:"last,omitempty"` // head it was last seen in, or fixed in

	By string `json:"by,omitempty"` // who, with write access, dismissed it without a change
	// its thread was resolved when its file may have changed: it has no outcome
	Unclear bool `json:"unclear,omitempty"`
	Counted bool `json:"counted,omitempty"` // its outcome is counted
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

	Dropped  []Finding `json:",omitempty"` // that a second look has refuted
	Unlisted int       `json:",omitempty"` // further ones, for which there was no room
}

// Gravest sorts findings for people: the most serious first, then by place.
func Gravest(all []Finding) {
	slices.SortStableFunc(all, gravest)
}

func gravest(a, b Finding) int {
	return cmp.Or(a.Severity.Compare(b.Severity), strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// near is the most lines between two findings at the same place.
const near = 3

// How similar two claims must be to count as one: at the same place, if the place is no longer known, and anywhere in
// the file. Models use different words each time they describe the same problem.
const (
	alikeHere    = 0.4
	alikeSome    = 0.6
	alikeWhereso = 0.8
)

// match finds for each new finding the index of the known one that it repeats, or -1. A known finding matches all
// repetitions at its own place. Elsewhere in the file it matches only one, and only if none is at its own place: the
// same mistake may be made twice.
func match(known []Known, found []Finding) []int {
	matched, taken := make([]int, len(found)), make([]bool, len(known))
	for i, f := range found {
		matched[i] = best(known, func(k Known) float64 { return here(k, f) })
		if matched[i] >= 0 {
			taken[matched[i]] = true
		}
	}
	for i, f := range found {
		if matched[i] >= 0 {
			continue
		}
		matched[i] = best(known, func(k Known) float64 { return anywhere(k, f) })
		if at := matched[i]; at >= 0 && taken[at] {
			matched[i] = -1
		} else if at >= 0 {
			taken[at] = true
		}
	}
	return matched
}

// best returns the most similar known finding. Among equals the last one wins, because its state is current.
func best(known []Known, alike func(Known) float64) int {
	at, most := -1, 0.0
	for i, k := range known {
		if a := alike(k); a > 0 && a >= most {
			at, most = i, a
		}
	}
	return at
}

// here returns how similar a finding is to a known one at the same place, or 0 if they differ. If the agent gives the
// known one's ID, they are the same.
func here(k Known, f Finding) float64 {
	if f.ID == k.ID {
		return 2
	}
	if k.Path != f.Path || k.Side.actual() != f.Side.actual() || !together(k.Finding, f) {
		return 0
	}
	return enough(alike(k.Claim, f.Claim), alikeHere)
}

// anywhere is like here, for a finding anywhere in the file.
func anywhere(k Known, f Finding) float64 {
	if k.Path != f.Path {
		return 0
	}
	if k.Line == 0 || f.Line == 0 {
		return enough(alike(k.Claim, f.Claim), alikeSome)
	}
	return enough(alike(k.Claim, f.Claim), alikeWhereso)
}

func enough(a, least float64) float64 {
	if a < least {
		return 0
	}
	return a
}

// actual returns the side, with the default filled in.
func (s Side) actual() Side {
	if s == "" {
		return Right
	}
	return s
}

// together reports whether two findings of one file are at the same place.
func together(a, b Finding) bool {
	if (a.Line == 0) != (b.Line == 0) {
		return false // one of them concerns the file as a whole
	}
	first := func(f Finding) int {
		if f.StartLine > 0 {
			return f.StartLine
		}
		return f.Line
	}
	return first(a) <= b.Line+near && first(b) <= a.Line+near
}

// alike returns the share of words that two claims have in common.
func alike(a, b string) float64 {
	x, y := words(a), words(b)
	common := 0
	for w := range x {
		if y[w] {
			common++
		}
	}
	if all := len(x) + len(y) - common; all > 0 {
		return float64(common) / float64(all)
	}
	return 0
}

// filler are words that carry no meaning of their own.
var filler = wordSet("a an the this that these those it its is are was were be been being of to in on at by for from " +
	"with as and or so then than when if while because which who what where there here can could may might will " +
	"would should must do does did has have had")

// words returns the significant words of a claim without their endings. Identifiers are kept as they are.
func words(s string) map[string]bool {
	all := wordSet(s)
	for w := range all {
		if filler[w] || len(w) == 1 {
			delete(all, w)
		}
	}
	return all
}

func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	}) {
		set[stem(w)] = true
	}
	return set
}

// stem removes the most common endings of an English word: "returns", "returned" and "returning" become one.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if rest, found := strings.CutSuffix(w, end); found && len(rest) >= 4 {
			return strings.TrimSuffix(rest, "e")
		}
	}
	if len(w) > 4 {
		return strings.TrimSuffix(w, "e")
	}
	return w
}
