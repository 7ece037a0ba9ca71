package worker

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Why a delivery gets no slot for now.
var (
	errNoSlot   = errors.New("all slots are taken")
	errNoMemory = errors.New("the worker has no memory for another run")
	errAlone    = errors.New("a task runs alone on the worker, because an earlier worker died while it ran")
)

// slots are how many runs a worker has at once: so many by number, and of those as many as fit into the memory there is. Automatic work
// never takes the last one, so that a person does not wait behind it.
type slots struct {
	total  int
	memory memory
	log    *slog.Logger

	mu    sync.Mutex
	held  map[*slot]bool
	freed chan struct{} // closed and replaced when a slot is given back
	alone *slot         // of a run that is to have the worker to itself; nil: there is none
	until time.Time     // nothing is started beside that before; zero: not before it ends
	apart time.Time     // nor another such run before then
	short bool          // the log has said that memory is short, and not yet that it is not
}

// slot is the place of one run.
type slot struct {
	of    *slots
	class string
	begun time.Time // of its CLI; zero before. Guarded by of.mu
}

func newSlots(n int, m memory, log *slog.Logger) *slots {
	return &slots{total: max(n, 2), memory: m.withDefaults(), log: log, held: map[*slot]bool{}, freed: make(chan struct{})}
}

// limit is how many slots a class may have of n.
func limit(class string, n int) int {
	switch class {
	case tasks.Interactive:
		return n
	case tasks.Review:
		return max(n-1, 1)
	case tasks.Background:
		return max(n/2, 1)
	default:
		return 1
	}
}

// take gets a slot for a class, or says why there is none. The caller releases it.
func (s *slots) take(class string) (*slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	same, automatic := 0, 0
	for h := range s.held {
		if h.class == class {
			same++
		}
		if h.class != tasks.Interactive {
			automatic++
		}
	}
	switch {
	case s.alone != nil && (s.until.IsZero() || time.Now().Before(s.until)):
		return nil, errAlone
	case len(s.held) >= s.total, same >= limit(class, s.total):
		return nil, errNoSlot
	case class != tasks.Interactive && automatic >= s.total-1:
		return nil, errNoSlot // review, background and maintenance together leave one as well
	case !s.fits(class):
		return nil, errNoMemory
	}
	taken := &slot{of: s, class: class}
	s.held[taken] = true
	return taken, nil
}

// begin says that the CLI of the slot's run is being started.
func (s *slot) begin() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.begun = time.Now()
}

// release gives the slot back. Only the first call counts.
func (s *slot) release() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if !s.of.held[s] {
		return
	}
	delete(s.of.held, s)
	if s.of.alone == s {
		s.of.alone = nil
	}
	close(s.of.freed)
	s.of.freed = make(chan struct{})
}

// running is how many slots are taken.
func (s *slots) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

const (
	// runMemory is what a run needs: CLI 2.1.329 was seen to take 323 MB at its peak. What its tools take on top
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
	if class != tasks.Interactive {
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

// reserve keeps everything else from starting on the slot's worker. It is false where another run is to be alone there.
func (s *slot) reserve() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.apartFrom(s) {
		return false
	}
	s.of.alone, s.of.until = s, time.Time{}
	return true
}

// reserveEmpty is reserve where no other run is on the worker, and false where one is.
func (s *slot) reserveEmpty() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if len(s.of.held) > 1 || s.of.apartFrom(s) {
		return false
	}
	s.of.alone, s.of.until = s, time.Time{}
	return true
}

// reserved reports whether reserve would be false.
func (s *slot) reserved() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.apartFrom(s)
}

// apartFrom reports whether another run is to be alone, or without another suspect. mu is held.
func (s *slots) apartFrom(other *slot) bool {
	return s.alone != nil && s.alone != other && (s.until.IsZero() || time.Now().Before(s.apart))
}

// admitAfter lets others start beside the slot's run when d has passed. Suspects are among them only after much longer.
func (s *slot) admitAfter(d time.Duration) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.until, s.of.apart = time.Now().Add(d), time.Now().Add(innocent*d)
}

// others is how many other slots of the worker are taken, and what is closed when one of them is given back.
func (s *slot) others() (n int, freed <-chan struct{}) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return len(s.of.held) - 1, s.of.freed
}
