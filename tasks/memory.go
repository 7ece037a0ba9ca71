package tasks

import (
	"math"
	"time"
)

const (
	// runMemory is what a run needs: the CLI was seen to take 323 MB at its peak (claude-cli.md §2). What its tools take on top
	// nobody can know.
	runMemory = 350 << 20
	// settling is how long a CLI may take to get to its size. Until then the memory it will need still looks available.
	settling = 30 * time.Second
)

// memory is what a worker knows of the memory for its runs.
type memory struct {
	available func() int64 // bytes; nil: it does not look
	run       int64        // bytes a run needs; 0: runMemory
}

func (m memory) withDefaults() memory {
	if m.available == nil {
		m.available = func() int64 { return math.MaxInt64 }
	}
	if m.run <= 0 {
		m.run = runMemory
	}
	return m
}

// known is what is available, in bytes; 0 where nothing tells.
func (m memory) known() int64 {
	if n := m.available(); n < math.MaxInt64 {
		return n
	}
	return 0
}

// fits reports whether a further run fits into the memory: beside what the latest runs will still take and, when it is automatic
// work, beside a run for a person. A run that would be the only one is let through all the same: if it does not fit now it never
// might, and waiting for ever helps nobody. s.mu is held.
func (s *slots) fits(class string) bool {
	young := int64(0)
	for h := range s.held {
		if h.begun.IsZero() || time.Since(h.begun) < settling {
			young++
		}
	}
	available := s.memory.available()
	spare := available/s.memory.run - young // runs there is room for
	enough := spare >= 1
	if class != Interactive {
		enough = spare >= 2
	}
	switch {
	case !enough && !s.short:
		s.short = true
		s.log.Warn("memory is short: tasks wait for it unless nothing else runs",
			"available", available, "need", s.memory.run, "running", len(s.held), "starting", young)
	case spare >= 2 && s.short: // for any class, lest the word changes with each task
		s.short = false
		s.log.Info("memory suffices again", "available", available)
	}
	return enough || len(s.held) == 0
}
