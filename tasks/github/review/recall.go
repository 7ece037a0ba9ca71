package review

import "slices"

// Recheck lists what is open, for the agent to look at again.
func (l *Ledger) Recheck() []Known {
	return l.those(func(k Known) bool { return k.Status == Open })
}

// Final lists what a person has dismissed or answered, and nobody wants to read again. What was answered is open all the same.
func (l *Ledger) Final() []Known {
	return l.those(func(k Known) bool { return k.Status == Dismissed || k.Status == Open && k.Answered })
}

// Dismiss ends an open finding for good because a person says so; false where there is none of that ID. It may be called again. One that stands
// in the summary of a review that was overtaken is not known yet, and will not be raised.
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
