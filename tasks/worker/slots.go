package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
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
	ready  *readyCLIs // use what no slot needs; nil if there are none
	log    *slog.Logger

	mu    sync.Mutex
	held  map[*slot]bool
	freed chan struct{} // closed and replaced when a slot is released
	alone *slot         // slot of a run that reserved the worker, or nil
	until time.Time     // no other run starts before then; if zero, before that run ends
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
	return &slots{
		total: max(n, 2), memory: m.withDefaults(), log: log, held: map[*slot]bool{}, freed: make(chan struct{}),
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

// take returns a slot for a class, or the reason why none is free. The caller releases it.
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
	case len(s.held) >= s.total, same >= SlotsOf(class, s.total):
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

// begin records that the CLI of the slot's run is being started. The CLIs that are kept ready make room for it.
func (s *slot) begin() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.begun = time.Now()
	s.of.ready.shrink(s.of.total - len(s.of.held))
}

// spare gives a place to a CLI that is to be kept ready now that the run of this slot is over, and reports whether
// there was one. There are as many as free slots, and none without memory for one and for the run of a person, or while
// a run has reserved the worker.
func (s *slot) spare(c *readyCLI) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.alone != nil || s.of.runsThatFit() < 2 {
		return false
	}
	free := s.of.total - len(s.of.held)
	if s.of.held[s] {
		free++
	}
	return s.of.ready.add(c, free)
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
	available func() int64 // bytes; nil if memory is not limited
	run       int64        // bytes per run; runMemory if 0
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
	need := int64(1)
	if class != tasks.Interactive {
		need = 2
	}
	spare := s.runsThatFit()
	if spare < need && s.ready.vacate() {
		spare = s.runsThatFit()
	}
	switch {
	case spare < need && !s.short:
		s.short = true
		s.log.Warn("memory is short: tasks wait for it unless nothing else runs",
			"available", s.memory.available(), "need", s.memory.run, "running", len(s.held))
	case spare >= 2 && s.short: // for any class, so that the log does not alternate
		s.short = false
		s.log.Info("memory suffices again", "available", s.memory.available())
	}
	return spare >= need || len(s.held) == 0
}

// runsThatFit returns how many runs still fit into the memory. s.mu is held.
func (s *slots) runsThatFit() int64 {
	young := int64(0)
	for h := range s.held {
		if h.begun.IsZero() || time.Since(h.begun) < settling {
			young++
		}
	}
	return s.memory.available()/s.memory.run - young
}

// reserve keeps everything else from starting on the slot's worker. It returns false if another run has reserved the
// worker, or if the worker should be empty and has another run.
func (s *slot) reserve(empty bool) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if empty && len(s.of.held) > 1 || s.of.apartFrom(s) {
		return false
	}
	s.of.alone, s.of.until = s, time.Time{}
	s.of.ready.shrink(0)
	return true
}

// reserved reports whether another run has reserved the worker.
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

// If a worker dies, any of the tasks that ran on it may be the cause, so all of them are suspects. Two suspects do
// not run on one worker at the same time, unless one of them has run there for long: then the next death has one
// suspect only. If possible soon, a suspect gets a worker without other runs, so that a culprit does not kill those.
// A suspect whose next death would be its last always does: no task is given up for a death that another may have
// caused.

// isolation keeps suspects apart. It is safe for concurrent use.
type isolation struct {
	*Config
	health *health
	waker  waker
}

const (
	// whyAlone is the reason shown to people while a suspect waits.
	whyAlone = "it needs a worker without other runs, because a worker died while it ran"
	// searches is the fraction of Timing.Alone during which a suspect looks for an idle worker in the fleet before it
	// waits on one.
	searches = 12
	// innocent times Timing.Alone is how long a suspect has to run before another one may start on the same worker.
	// Otherwise, after a crash of a machine with many long runs, they would run one after the other.
	innocent     = 10
	longest      = 2 * time.Hour   // the longest run, if runs have no limit
	postponeMost = 3 * time.Minute // longest wait of a suspect before it is delivered again, ± 50 %
)

// strict reports whether a suspect must not share its worker, because its next crash would end it.
func strict(rec store.Record) bool { return rec.Crashes+1 >= maxCrashes }

// searched returns how long after the crash a suspect was claimed; 0 if the time of the crash is unknown.
func searched(rec store.Record) time.Duration {
	if rec.Crashed.IsZero() {
		return 0
	}
	return max(0, rec.Started.Sub(rec.Crashed))
}

// patience returns how long a suspect may keep its worker from starting anything while other runs there continue.
// With 0 it looks for an idle worker instead. A suspect that is not strict then starts beside them. A strict one
// gives the worker back, and holds one again for the second half of each doubling of its waiting time. Holding is
// limited to the duration of the longest run, followed by an equal pause, so one suspect never takes more than half
// of one worker for long.
func (i *isolation) patience(rec store.Record) time.Duration {
	waited, span := searched(rec), i.Timing.Alone
	switch {
	case waited < span/searches:
		return 0
	case !strict(rec):
		return span
	case waited < span:
		return span - waited
	}
	waited -= span
	for most := 2 * cmp.Or(i.Policy.Limit, longest); span < most && waited >= span; {
		waited -= span
		span = min(2*span, most)
	}
	if waited %= span; waited < span/2 {
		return 0
	}
	return span - waited
}

// postpone makes a suspect wait, for seconds at first and for minutes later.
func postpone(rec store.Record) error {
	return tasks.Later(around(min(max(busyWait, searched(rec)/32), postponeMost)), whyAlone)
}

// accept postpones a suspect while it can look for an idle worker, and on a worker where another suspect keeps it
// from starting. It makes no requests, because it runs every few seconds. A strict suspect that finds the worker empty
// reserves it. A crash counts against the suspect afterwards, unless idle is set, which is the case for a strict one
// beside which others run: isolate then counts it in.
func (i *isolation) accept(r *run) (idle bool, err error) {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return false, nil
	}
	if n, _ := r.slot.others(); n > 0 && i.patience(rec) == 0 || r.slot.reserved() {
		return true, postpone(rec) // random delays separate them the next time
	}
	if strict(rec) && !r.slot.reserve(true) {
		return true, nil
	}
	return false, r.claim.Idle(r.ctx, "") // claim.lua has set the reason
}

// isolate makes sure that a suspect runs without other runs, or at least without another suspect. It waits for at
// most its patience until the worker's other runs have ended; meanwhile nothing new starts there. idle
// is the result of accept.
func (i *isolation) isolate(r *run, idle bool) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if !r.slot.reserve(false) {
		return postpone(rec)
	}
	if n, _ := r.slot.others(); n > 0 {
		patience := i.patience(rec)
		if patience == 0 {
			return postpone(rec)
		}
		if err := i.awaitSolitude(r, patience); err != nil {
			return err
		}
		idle = true
	}
	if !strict(rec) {
		r.slot.admitAfter(i.Timing.Alone)
	}
	if !idle {
		return nil
	}
	return r.claim.Idle(r.ctx, "")
}

// awaitSolitude waits at most atMost until no other run is on the worker, and then postpones a strict suspect. It
// stops waiting if the worker can no longer run tasks. Meanwhile it lends the suspect's places under the fleet's
// limits, because other runs there may take hours.
func (i *isolation) awaitSolitude(r *run, atMost time.Duration) error {
	if err := r.claim.Idle(r.ctx, whyAlone); err != nil {
		return err
	}
	if err := r.claim.Lend(r.ctx); err != nil {
		return err
	}
	i.waker.wakeLines(r.detached, r.claim.Record())
	waiting, cancel := context.WithTimeout(r.ctx, atMost)
	defer cancel()
	for n, freed := r.slot.others(); n > 0 && waiting.Err() == nil; n, freed = r.slot.others() {
		ready, turned := i.health.turns()
		if !ready {
			return unable()
		}
		select {
		case <-freed:
		case <-turned:
		case <-waiting.Done():
		}
	}
	if r.ctx.Err() != nil {
		return r.cause()
	}
	if n, _ := r.slot.others(); n > 0 && strict(r.claim.Record()) {
		return postpone(r.claim.Record())
	}
	return r.claim.TakeBack(r.ctx)
}
