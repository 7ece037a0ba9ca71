package findings

import (
	"cmp"
	"slices"
)

// History returns all findings of the pull request as they are now, the open ones first, with the details that an
// answer has about them: the ledger keeps the details of posted findings only in their threads. If the ledger is lost,
// the answer's findings take its place, as found in head.
func (l *Ledger) History(head string, found []Finding) []Known {
	all := slices.Clone(l.Known)
	if len(all) == 0 {
		for _, f := range found {
			all = append(all, Known{Finding: f, Status: Open, First: head, Last: head})
		}
	}
	for i, at := range match(all, found) {
		if at < 0 {
			continue // it was not posted
		}
		k, f := &all[at], found[i]
		k.Evidence, k.Suggestion, k.Original = cmp.Or(k.Evidence, f.Evidence), cmp.Or(k.Suggestion,
			f.Suggestion), cmp.Or(k.Original, f.Original)
	}
	slices.SortStableFunc(all, func(a, b Known) int {
		return cmp.Or(closedLast(a)-closedLast(b), gravest(a.Finding, b.Finding))
	})
	return all
}

func closedLast(k Known) int {
	if k.Status == Open {
		return 0
	}
	return 1
}
