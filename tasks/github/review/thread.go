package review

import "strings"

// Thread is a conversation at a line of the diff that began with a finding of ours, as it is now.
type Thread struct {
	ID      string // node ID
	Comment int64  // that began it
	Finding string // ID of the finding, from the marker of that comment
	Path    string
	Line    int    // in the present diff; 0: the line is not in it any more
	Text    string // of the comment that began it

	Resolved bool
	Ours     bool // it was we who resolved it
	Answered bool // somebody whose word counts has replied
}

// Observe brings the ledger up to date with what people did: what they resolved is dismissed, what they answered is not raised again, and
// where a line has moved the finding moves along. A thread of ours that the ledger has no finding for, because its memory was lost, becomes one.
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

// move takes a finding along to where its line is now. One that is nowhere has no line, and is of the file as a whole.
func (k *Known) move(line int) {
	switch {
	case line == 0:
		k.StartLine = 0
	case k.StartLine > 0:
		k.StartLine = max(1, k.StartLine+line-k.Line)
	}
	k.Line = line
}

// adopt makes a known finding of a thread: of one that was posted by a report that could not say so any more, or of what the comment tells.
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
