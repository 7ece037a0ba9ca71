package review

import "strings"

// Thread is the current state of a conversation on a line of the diff that errand started with a finding.
type Thread struct {
	ID      string // node ID
	Comment int64  // the first one of the thread
	Finding string // ID of the finding, from the first comment's marker
	Path    string
	Line    int    // in the present diff; 0: the line is no longer in it
	Text    string // of the first comment

	Resolved bool
	Ours     bool // errand resolved it
	Answered bool // a person with a say in the repository has replied
}

// Observe updates the ledger with what people did: a resolved finding is dismissed, an answered one is not raised
// again, and a finding moves with its line. If the ledger lacks the finding of one of errand's threads, because the
// ledger was lost, Observe adds it.
func (l *Ledger) Observe(threads []Thread) {
	for _, t := range threads {
		at := l.find(t.Finding)
		if at < 0 {
			l.Known = append(l.Known, l.adopt(t))
			at = len(l.Known) - 1
		}
		k := &l.Known[at]
		k.Thread, k.Comment, k.Answered = t.ID, t.Comment, k.Answered || t.Answered
		k.move(t.Line)
		switch {
		case k.Status != Open || !t.Resolved:
		case t.Ours:
			k.Status = Fixed
		default:
			k.Status = Dismissed
		}
	}
	l.fit()
}

// move moves a finding to the current place of its line. If the line is gone, the finding concerns the whole file.
func (k *Known) move(line int) {
	switch {
	case line == 0:
		k.StartLine = 0
	case k.StartLine > 0:
		k.StartLine = max(1, k.StartLine+line-k.Line)
	}
	k.Line = line
}

// adopt makes a known finding of a thread: from the plan of a report that could not record it, or from the comment.
func (l *Ledger) adopt(t Thread) Known {
	for _, s := range l.Settled {
		for _, f := range s.Plan.Inline {
			if f.ID == t.Finding {
				return Known{Finding: f.brief(), Status: Open, First: s.Head, Last: s.Head}
			}
		}
	}
	f := Finding{ID: t.Finding, Severity: Major, Path: t.Path, Line: t.Line, Side: Right}
	_, text, _ := strings.Cut(t.Text, "\n")
	text, _, _ = strings.Cut(text, "\n")
	if said, claim, ok := strings.Cut(text, "**: "); ok && Severity(strings.TrimPrefix(said, "**")).Known() {
		f.Severity, text = Severity(strings.TrimPrefix(said, "**")), claim
	}
	f.Claim = oneLine(text, maxClaim)
	return Known{Finding: f, Status: Open}
}
