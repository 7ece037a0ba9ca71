package tasks

import (
	"errors"
	"log/slog"
	"sync"
	"time"
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
	case Interactive:
		return n
	case Review:
		return max(n-1, 1)
	case Background:
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
		if h.class != Interactive {
			automatic++
		}
	}
	switch {
	case s.alone != nil && (s.until.IsZero() || time.Now().Before(s.until)):
		return nil, errAlone
	case len(s.held) >= s.total, same >= limit(class, s.total):
		return nil, errNoSlot
	case class != Interactive && automatic >= s.total-1:
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
