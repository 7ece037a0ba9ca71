package metrics

import (
	"cmp"
	"strings"
	"sync"
)

// The values of labels that stand for what has no name of its own.
const (
	other = "other" // of too many, or not configured
	none  = "none"
)

// few keeps a label to so many values: the first that come. The rest are other.
type few struct {
	most int

	mu   sync.Mutex
	seen map[string]bool
}

func newFew(most int) *few { return &few{most: most, seen: map[string]bool{}} }

func (f *few) of(name string) string {
	name = cmp.Or(name, none)
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.seen[name] {
		if len(f.seen) >= f.most {
			return other
		}
		f.seen[name] = true
	}
	return name
}

// known are the values of a label that were configured. Like GitHub it does not mind upper and lower case.
type known []string

func (k known) of(name string) string {
	if name == "" {
		return none
	}
	for _, n := range k {
		if strings.EqualFold(n, name) {
			return n
		}
	}
	return other
}
