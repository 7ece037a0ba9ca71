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

// The bounds of what is remembered. The store takes 256 KiB.
const (
	maxKnown   = 100       // findings of a pull request
	maxSettled = 3         // reviews whose reports may still be closed again
	maxPlan    = 120 << 10 // bytes of one review, as JSON
	maxLedger  = 240 << 10 // bytes of all
)

// id names a new finding by its file and the words of its claim, so that it is the same if all memory is lost. One that was mended and has come
// back gets a number.
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

// brief is a finding without its details.
func (f Finding) brief() Finding {
	f.Evidence, f.Original, f.Suggestion = "", "", ""
	return f
}

// fit forgets what counts least until the ledger is within its bounds: details, then old reviews, then findings that are closed, then the oldest
// ones.
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
			return // the plan at hand has bounds of its own
		}
	}
}

// forget drops the known finding that counts least.
func (l *Ledger) forget() Known {
	at := max(0, slices.IndexFunc(l.Known, Known.closed))
	k := l.Known[at]
	l.Known = slices.Delete(l.Known, at, at+1)
	return k
}

// shorten takes the details off a finding, and says how many bytes that saves.
func (f *Finding) shorten() int {
	before := size(f)
	*f = f.brief()
	return before - size(f)
}

// fit takes details from what was told before, then from what is new, then new findings themselves, each from the end, until the plan is within its
// bounds.
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
	body, _ := json.Marshal(v) // plain data: there is nothing in it that cannot be marshalled
	return len(body)
}
