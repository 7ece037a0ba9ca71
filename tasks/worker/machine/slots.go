package machine

import (
	"context"
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
	ErrAlone    = errors.New("a task needs the worker without other runs, because an earlier worker died while it ran")
)

// Slots limits how many runs a worker has at once, by number and by available memory. Automatic work never takes the
// last slot, so that a person does not wait behind it.
type Slots struct {
	Memory Memory
	total  int
	log    *slog.Logger

	mu    sync.Mutex
	held  map[*Slot]bool
	freed chan struct{} // closed and replaced when a slot is released
	alone *Slot         // slot of a run that reserved the worker until it ends, or nil
	short bool          // the log has reported that memory is short, and not yet that it suffices
}

// Slot is the place of one run.
type Slot struct {
	of    *Slots
	class string

	// Guarded by of.mu.
	begun   time.Time // when its CLI was started; zero before
	suspect bool      // its task lost a worker before
}

// NewSlots returns total slots that share a memory.
func NewSlots(total int, m Memory, log *slog.Logger) *Slots {
	return &Slots{
		total: total, Memory: m.withDefaults(), log: log, held: map[*Slot]bool{}, freed: make(chan struct{}),
	}
}

// SlotsOf returns how many of a worker's n slots a class may take.
func SlotsOf(class string, n int) int {
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

// Take returns a slot for a class, or the reason why none is free. The caller releases it.
func (s *Slots) Take(class string) (*Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lacks(class); err != nil {
		return nil, err
	}
	taken := &Slot{of: s, class: class}
	s.held[taken] = true
	return taken, nil
}

// lacks returns the reason why no slot is free for a class; nil if one is. The caller has locked s.
func (s *Slots) lacks(class string) error {
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
	case s.alone != nil:
		return ErrAlone
	case len(s.held) >= s.total || same >= SlotsOf(class, s.total):
		return errNoSlot
	case class != tasks.Interactive && s.total > 1 && automatic >= s.total-1:
		return errNoSlot // all automatic classes together leave one slot
	case !s.fits(class):
		return errNoMemory
	default:
		return nil
	}
}

// lookAgain is how often AwaitRoom looks for memory that has become available.
const lookAgain = time.Second

// AwaitRoom returns when a slot is free for a class, or when ctx ends.
func (s *Slots) AwaitRoom(ctx context.Context, class string) {
	for ctx.Err() == nil {
		s.mu.Lock()
		freed, lacks := s.freed, s.lacks(class)
		s.mu.Unlock()
		if lacks == nil {
			return
		}
		select {
		case <-freed:
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
}

// Begin records that the CLI of the slot's run is being started.
func (s *Slot) Begin() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.begun = time.Now()
}

// Release releases the slot. Only the first call counts.
func (s *Slot) Release() {
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

// Total returns how many runs the worker may have at once.
func (s *Slots) Total() int { return s.total }

// Running returns how many slots are taken.
func (s *Slots) Running() int {
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

// Memory is the memory for a worker's runs.
type Memory struct {
	Available func() int64 // bytes; nil if memory is not limited
	Run       int64        // bytes per run; runMemory if 0
}

func (m Memory) withDefaults() Memory {
	if m.Available == nil {
		m.Available = func() int64 { return math.MaxInt64 }
	}
	if m.Run <= 0 {
		m.Run = runMemory
	}
	return m
}

// Known returns the available bytes; 0 if unknown.
func (m Memory) Known() int64 {
	if n := m.Available(); n < math.MaxInt64 {
		return n
	}
	return 0
}

// fits reports whether another run fits into the memory, in addition to what recently started runs will still use
// and, for automatic work, to a run for a person. The only run of a worker is always allowed, because it would
// otherwise never run. s.mu is held.
func (s *Slots) fits(class string) bool {
	need := int64(1)
	if class != tasks.Interactive {
		need = 2
	}
	spare := s.runsThatFit()
	if spare < need && !s.short {
		s.short = true
		s.log.Warn("memory is short: tasks wait for it unless nothing else runs",
			"available", s.Memory.Available(), "need", s.Memory.Run, "running", len(s.held))
	} else if spare >= 2 && s.short { // for any class, so that the log does not alternate
		s.short = false
		s.log.Info("memory suffices again", "available", s.Memory.Available())
	}
	return spare >= need || len(s.held) == 0
}

// runsThatFit returns how many runs still fit into the memory. s.mu is held.
func (s *Slots) runsThatFit() int64 {
	young := int64(0)
	for h := range s.held {
		if h.begun.IsZero() || time.Since(h.begun) < settling {
			young++
		}
	}
	return s.Memory.Available()/s.Memory.Run - young
}

// Reserve keeps everything else from starting on the slot's worker until the slot is released. It returns false if
// another run has reserved the worker, or if the worker should be empty and has another run.
func (s *Slot) Reserve(empty bool) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if empty && len(s.of.held) > 1 || s.of.alone != nil && s.of.alone != s {
		return false
	}
	s.of.alone = s
	return true
}

// JoinSuspects makes the slot's run one of the worker's suspects, unless that are more than others already. It
// returns how many there were, and whether the run is one of them now.
func (s *Slot) JoinSuspects(others int) (n int, joined bool) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for h := range s.of.held {
		if h.suspect && h != s {
			n++
		}
	}
	s.suspect = n <= others
	return n, s.suspect
}

// MayReserve reports whether no other run has reserved the worker.
func (s *Slot) MayReserve() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.alone == nil || s.of.alone == s
}

// Others returns how many other slots of the worker are taken, and a channel that is closed when a slot is released.
func (s *Slot) Others() (n int, freed <-chan struct{}) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return len(s.of.held) - 1, s.of.freed
}
