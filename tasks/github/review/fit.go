package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The bounds of a ledger. The store takes 256 KiB.
const (
	maxKnown   = 100       // findings of a pull request
	maxSettled = 3         // reviews whose reports may be closed again
	maxPlan    = 120 << 10 // bytes of one review, as JSON
	maxLedger  = 240 << 10 // bytes of the whole ledger
)

// id derives the ID of a new finding from its file and the words of its claim, so that it stays the same if the ledger
// is lost. A finding that was fixed and has come back gets a number.
func (l *Ledger) id(f Finding, also []Finding) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + strings.Join(slices.Sorted(maps.Keys(words(f.Claim))), " ")))
	name := hex.EncodeToString(sum[:6])
	taken := func(id string) bool {
		return l.find(id) >= 0 || slices.ContainsFunc(also, func(a Finding) bool { return a.ID == id })
	}
	for id, n := name, 2; ; n++ {
		if !taken(id) {
			return id
		}
		id = fmt.Sprintf("%s-%d", name, n)
	}
}

// brief returns a finding without its details.
func (f Finding) brief() Finding {
	f.Evidence, f.Original, f.Suggestion = "", "", ""
	return f
}

// fit drops the least important data until the ledger is within its bounds: details, then old reviews, then closed
// findings, then the oldest ones.
func (l *Ledger) fit() {
	l.Settled = l.Settled[max(0, len(l.Settled)-maxSettled):]
	for len(l.Known) > maxKnown {
		l.forget()
	}
	for over, i := size(l)-maxLedger, 0; over > 0; {
		switch {
		case i < len(l.Known):
			over -= l.Known[i].shorten()
			i++
		case len(l.Settled) > 1:
			over -= size(l.Settled[0])
			l.Settled = l.Settled[1:]
		case len(l.Known) > 0:
			over -= size(l.forget())
		default:
			return // the current plan has its own bounds
		}
	}
}

// forget drops the least important known finding.
func (l *Ledger) forget() Known {
	at := max(0, slices.IndexFunc(l.Known, Known.closed))
	k := l.Known[at]
	l.Known = slices.Delete(l.Known, at, at+1)
	return k
}

// shorten removes the details of a finding and returns how many bytes that saves.
func (f *Finding) shorten() int {
	before := size(f)
	*f = f.brief()
	return before - size(f)
}

// fit brings a plan within its bounds. It drops details of earlier findings, then details of new ones, then new
// findings, each from the end.
func (p *Plan) fit() {
	over := size(p) - maxPlan
	for i := len(p.StillOpen) - 1; i >= 0 && over > 0; i-- {
		over -= p.StillOpen[i].shorten()
	}
	for i := len(p.Inline) - 1; i >= 0 && over > 0; i-- {
		over -= p.Inline[i].shorten()
	}
	for n := len(p.Inline); n > 0 && over > 0; n-- {
		over -= size(p.Inline[n-1])
		p.Inline = p.Inline[:n-1]
	}
}

func size(v any) int {
	body, _ := json.Marshal(v) // plain data, which always marshals
	return len(body)
}
