package instructions

import "fmt"

// collector collects a Set.
type collector struct {
	reader        Reader
	room          int                 // bytes that may still be read
	looked        int                 // bytes of possible paths of imports
	files         map[string]bool     // what exists, of instructions and possible imports
	imports       map[string][]string // of texts, by name
	seen          map[string]bool     // texts that are in the set, by name and paths
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

// read reads files with at most most bytes.
func (c *collector) read(names []string, most int) ([]Blob, error) {
	if len(names) == 0 {
		return nil, nil
	}
	blobs, err := c.reader(names, most, c.room)
	for _, b := range blobs {
		c.room -= len(b.Content)
	}
	return blobs, err
}
