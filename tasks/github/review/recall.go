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

func (l *Ledger) those(which func(Known) bool) []Known {
	return slices.DeleteFunc(slices.Clone(l.Known), func(k Known) bool { return !which(k) })
}
