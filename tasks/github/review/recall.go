package review

import "slices"

// Recheck lists the open findings that the agent should check again.
func (l *Ledger) Recheck() []Known {
	return l.those(func(k Known) bool { return k.Status == Open })
}

// Final lists the findings that a person has dismissed or answered and that must not be raised again. Answered findings
// are still open.
func (l *Ledger) Final() []Known {
	return l.those(func(k Known) bool { return k.Status == Dismissed || k.Status == Open && k.Answered })
}

// Dismiss closes an open finding for good at a person's request, and returns false if the ID is unknown. It may be
// called again. A finding in the summary of a superseded review is not known yet; it will not be raised.
func (l *Ledger) Dismiss(id string) bool {
	at := l.find(id)
	if at < 0 {
		for _, s := range l.Settled {
			if i := slices.IndexFunc(s.Plan.Inline, func(f Finding) bool { return f.ID == id }); i >= 0 {
				l.Known = append(l.Known, Known{Finding: s.Plan.Inline[i].brief(), Status: Dismissed, First: s.Head, Last: s.Head})
				l.fit()
				return true
			}
		}
		return false
	}
	if l.Known[at].Status == Open {
		l.Known[at].Status = Dismissed
	}
	return l.Known[at].Status == Dismissed
}

func (l *Ledger) those(which func(Known) bool) []Known {
	return slices.DeleteFunc(slices.Clone(l.Known), func(k Known) bool { return !which(k) })
}
