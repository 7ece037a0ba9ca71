package worker

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// The reasons why a delivery gets no slot.
var (
	errNoSlot   = errors.New("all slots are taken")
	errNoMemory = errors.New("the worker has no memory for another run")
	errAlone    = errors.New("a task needs the worker without other runs, because an earlier worker died while it ran")
)

// slots limits how many runs a worker has at once, by number and by available memory. Automatic work never takes the
// last slot, so that a person does not wait behind it.
type slots struct {
	total  int
	memory memory
	log    *slog.Logger

	mu    sync.Mutex
	held  map[*slot]bool
	freed chan struct{} // closed and replaced when a slot is released
	alone *slot         // slot of a run that reserved the worker; nil: none
	until time.Time     // no other run starts before then; zero: before that run ends
	apart time.Time     // no other suspect starts before then
	short bool          // the log has reported that memory is short, and not yet that it suffices
}

// slot is the place of one run.
type slot struct {
	of    *slots
	class string
	begun time.Time // when its CLI was started; zero before. Guarded by of.mu
}

func newSlots(n int, m memory, log *slog.Logger) *slots {
	return &slots{total: max(n, 2), memory: m.withDefaults(), log: log, held: map[*slot]bool{}, freed: make(chan struct{})}
}

// limit returns how many of n slots a class may take.
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

// take returns a slot for a class, or the reason why there is none. The caller releases it.
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
		return nil, errNoSlot // all automatic classes together leave one slot
	case !s.fits(class):
		return nil, errNoMemory
	}
	taken := &slot{of: s, class: class}
	s.held[taken] = true
	return taken, nil
}

// begin records that the CLI of the slot's run is being started.
func (s *slot) begin() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.begun = time.Now()
}

// release releases the slot. Only the first call counts.
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

// running returns how many slots are taken.
func (s *slots) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

const (
	// runMemory is the memory of a run: the CLI's measured peak is 323 MB (CLI 2.1.329). Its tools take an unknown
	// amount more.
	runMemory = 350 << 20
	// settling is how long a CLI may take to reach its size. Until then, the memory that it will use still looks
	// available.
	settling = 30 * time.Second
)

// memory is the memory for a worker's runs.
type memory struct {
	available func() int64 // bytes; nil: memory is not limited
	run       int64        // bytes per run; 0: runMemory
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

// known returns the available bytes; 0 if unknown.
func (m memory) known() int64 {
	if n := m.available(); n < math.MaxInt64 {
		return n
	}
	return 0
}

// fits reports whether another run fits into the memory, in addition to what recently started runs will still use
// and, for automatic work, to a run for a person. The only run of a worker is always allowed, because it would
// otherwise never run. s.mu is held.
func (s *slots) fits(class string) bool {
	young := int64(0)
	for h := range s.held {
		if h.begun.IsZero() || time.Since(h.begun) < settling {
			young++
		}
	}
	available := s.memory.available()
	spare := available/s.memory.run - young // runs that still fit
	enough := spare >= 1
	if class != tasks.Interactive {
		enough = spare >= 2
	}
	switch {
	case !enough && !s.short:
		s.short = true
		s.log.Warn("memory is short: tasks wait for it unless nothing else runs",
			"available", available, "need", s.memory.run, "running", len(s.held), "starting", young)
	case spare >= 2 && s.short: // for any class, so that the log does not alternate
		s.short = false
		s.log.Info("memory suffices again", "available", available)
	}
	return enough || len(s.held) == 0
}

// reserve keeps everything else from starting on the slot's worker. It returns false if another run has reserved the
// worker.
func (s *slot) reserve() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.apartFrom(s) {
		return false
	}
	s.of.alone, s.of.until = s, time.Time{}
	return true
}

// reserveEmpty is reserve for an otherwise empty worker. It returns false if the worker has another run.
func (s *slot) reserveEmpty() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if len(s.of.held) > 1 || s.of.apartFrom(s) {
		return false
	}
	s.of.alone, s.of.until = s, time.Time{}
	return true
}

// reserved reports whether reserve would return false.
func (s *slot) reserved() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.apartFrom(s)
}

// apartFrom reports whether another run has reserved the worker, for itself or against other suspects. mu is held.
func (s *slots) apartFrom(other *slot) bool {
	return s.alone != nil && s.alone != other && (s.until.IsZero() || time.Now().Before(s.apart))
}

// admitAfter lets other runs start beside the slot's run after d, and other suspects after innocent times d.
func (s *slot) admitAfter(d time.Duration) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.until, s.of.apart = time.Now().Add(d), time.Now().Add(innocent*d)
}

// others returns how many other slots of the worker are taken, and a channel that is closed when a slot is released.
func (s *slot) others() (n int, freed <-chan struct{}) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return len(s.of.held) - 1, s.of.freed
}
