package instructions

import "fmt"

// collector collects a Set.
type collector struct {
	read          func([]string) ([]Blob, error)
	files         map[string]bool
	seen          map[string]bool // texts that are in the set, by name and paths
	set           Set
	always, later int // bytes of the set's texts
	patterns      int // of the set's texts
	unsaid        int // notes beyond maxNotes
}

// note adds a sentence about what is missing.
func (c *collector) note(format string, args ...any) {
	if len(c.set.Notes) == maxNotes {
		c.unsaid++
		return
	}
	c.set.Notes = append(c.set.Notes, fmt.Sprintf(format, args...))
}
