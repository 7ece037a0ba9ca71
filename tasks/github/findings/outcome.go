package findings

import "cmp"

// Kind is what a finding is about, from a fixed list, so that findings of a kind can be counted.
type Kind string

// OtherKind is the kind of findings that fit no other, and counts for those without a kind.
const OtherKind Kind = "other"

// kinds lists the kinds. The schema of an answer has the same list.
var kinds = []Kind{
	"correctness", "security", "data-loss", "concurrency", "error-handling", "performance", "interface", "tests",
	"maintainability", OtherKind,
}

// Name returns the name of the kind.
func (k Kind) Name() string { return string(cmp.Or(k, OtherKind)) }

// Outcome is what people did with a finding.
type Outcome string

// The outcomes.
const (
	Accepted Outcome = "fixed"     // its code was changed or removed
	Rejected Outcome = "dismissed" // a person with write access dismissed it without a change
	Ignored  Outcome = "ignored"   // the pull request was merged without either
)

// Judged is a finding with its outcome.
type Judged struct {
	Known
	Outcome Outcome
}

// Outcomes returns the findings that have an outcome and are not counted yet. merged reports whether the pull request
// was merged, which settles all of them.
func (l *Ledger) Outcomes(merged bool) (all []Judged) {
	for _, k := range l.Known {
		if o := k.outcome(merged); o != "" && !k.Counted {
			all = append(all, Judged{k, o})
		}
	}
	return all
}

// outcome returns what people did with a finding, or "" if that is not known yet.
func (k Known) outcome(merged bool) Outcome {
	switch {
	case k.closed():
		return Accepted
	case k.Status == Dismissed && k.By != "":
		return Rejected
	case k.Unclear:
		return ""
	case k.Status == Dismissed && k.Thread != "" && k.Line == 0: // the thread was resolved after its lines had changed
		return Accepted
	case merged:
		return Ignored
	}
	return ""
}

// Count records that the outcomes of these findings are counted.
func (l *Ledger) Count(counted []Judged) {
	for _, j := range counted {
		if at := l.find(j.ID); at >= 0 {
			l.Known[at].Counted = true
		}
	}
}
