package tasks

import (
	"context"
	"time"
)

// A task that takes its worker down takes down whatever runs beside it, and nothing tells which of them did it. So all of them are suspects,
// and no two suspects run on one worker, unless one of them has run there for long: whichever dies again was the only suspect there. A
// suspect has the worker to itself where that can be had soon, so that a culprit does not take others down as well. One that would be given
// up at its next death has it in any case: no task is given up for a death that another may have caused.

// whyAlone is why a suspect waits, for people.
const whyAlone = "it runs alone, because a worker died while it ran"

// searches is the part of Timing.Alone for which a suspect goes round the fleet in search of an idle worker, before it waits where it is.
const searches = 12

// innocent times Timing.Alone is how long a suspect has to run before another one may start beside it. A machine that went down with many
// long runs on it would else have them one after the other.
const innocent = 10

// elsewhere sends a suspect on while it can look for an idle worker, and from one on which it could not start for another suspect's sake. It
// reserves nothing, and asks nobody: it is done every few seconds.
func (w *Worker) elsewhere(r *run) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if n, _ := r.slot.others(); n > 0 && rec.Started.Sub(rec.Crashed) < w.timing.Alone/searches || r.slot.reserved() {
		return later(around(busyWait), whyAlone) // they come one after the other the next time
	}
	return nil
}

// isolate sees to it that a suspect runs alone, or at least beside no other suspect. It may take Timing.Alone until the worker's other runs
// have ended; meanwhile nothing new is started there.
func (w *Worker) isolate(r *run) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if err := w.elsewhere(r); err != nil {
		return err
	}
	if !r.slot.reserve() {
		return later(around(busyWait), whyAlone)
	}
	strict := rec.Crashes+1 >= maxCrashes
	if n, _ := r.slot.others(); n > 0 {
		if err := w.awaitSolitude(r, strict); err != nil {
			return err
		}
	}
	if !strict {
		r.slot.admitAfter(w.timing.Alone)
	}
	return nil
}

// awaitSolitude waits until no other run is on the worker; unless strict, for Timing.Alone at most. A worker that cannot run it any more does not
// keep it. Meanwhile its places under the fleet's limits are lent: other runs there may take hours.
func (w *Worker) awaitSolitude(r *run, strict bool) error {
	if err := r.claim.Idle(r.ctx, whyAlone); err != nil {
		return err
	}
	if err := r.claim.Lend(r.ctx); err != nil {
		return err
	}
	w.wakeLines(r.detached, r.claim.Record())
	waiting, cancel := context.WithCancel(r.ctx)
	defer cancel()
	if !strict {
		waiting, cancel = context.WithTimeout(waiting, w.timing.Alone)
		defer cancel()
	}
	for n, freed := r.slot.others(); n > 0 && waiting.Err() == nil; n, freed = r.slot.others() {
		ready, turned := w.health.turns()
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
	if err := r.claim.TakeBack(r.ctx); err != nil {
		return err
	}
	return r.claim.Idle(r.ctx, "")
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
