package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
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

// longest is how long the longest run takes where runs have no limit.
const longest = 2 * time.Hour

// goOnMost is how long a suspect waits at most before it asks again, give or take half.
const goOnMost = 3 * time.Minute

// strict reports whether a suspect has to be alone: its next death would be its last.
func strict(rec store.Record) bool { return rec.Crashes+1 >= maxCrashes }

// searched is how long after the death of its worker a suspect was claimed; 0 where the time of that is not known.
func searched(rec store.Record) time.Duration {
	if rec.Crashed.IsZero() {
		return 0
	}
	return max(0, rec.Started.Sub(rec.Crashed))
}

// patience is for how long a suspect may keep its worker from starting anything while other runs there go on; 0: it looks for an idle worker. A
// strict one, which does not start beside them, gives the worker back then, and keeps one again for the second half of each doubling of the
// time that it has waited, but for no longer than the longest run takes: then it gives the worker back for as long. So one suspect never takes
// more than half of one worker for long.
func (w *Worker) patience(rec store.Record) time.Duration {
	waited, span := searched(rec), w.timing.Alone
	switch {
	case waited < span/searches:
		return 0
	case !strict(rec):
		return span
	case waited < span:
		return span - waited
	}
	waited -= span
	for most := 2 * cmp.Or(w.cfg.Policy.Limit, longest); span < most && waited >= span; {
		waited -= span
		span = min(2*span, most)
	}
	if waited %= span; waited < span/2 {
		return 0
	}
	return span - waited
}

// goOn lets a suspect ask again, at first after seconds, and in the end after minutes.
func goOn(rec store.Record) error {
	return tasks.Later(around(min(max(busyWait, searched(rec)/32), goOnMost)), whyAlone)
}

// elsewhere sends a suspect on while it can look for an idle worker, and from one on which it could not start for another suspect's sake. It
// asks nobody: it is done every few seconds. From here on a death counts against a suspect, but not against a strict one beside which others
// run. One that finds the worker empty keeps it so.
func (w *Worker) elsewhere(r *run) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if n, _ := r.slot.others(); n > 0 && w.patience(rec) == 0 || r.slot.reserved() {
		return goOn(rec) // they come one after the other the next time
	}
	if strict(rec) && !r.slot.reserveEmpty() {
		return nil
	}
	return r.claim.Idle(r.ctx, "") // claim.lua has set it
}

// isolate sees to it that a suspect runs alone, or at least beside no other suspect. It waits for as long as its patience until the worker's
// other runs have ended; meanwhile nothing new is started there.
func (w *Worker) isolate(r *run) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if !r.slot.reserve() {
		return goOn(rec)
	}
	if n, _ := r.slot.others(); n > 0 {
		patience := w.patience(rec)
		if patience == 0 {
			return goOn(rec)
		}
		if err := w.awaitSolitude(r, patience); err != nil {
			return err
		}
	}
	if !strict(rec) {
		r.slot.admitAfter(w.timing.Alone)
	}
	return r.claim.Idle(r.ctx, "")
}

// awaitSolitude waits until no other run is on the worker, for so long at most; then it sends a strict suspect on. A worker that cannot run it
// any more does not keep it. Meanwhile its places under the fleet's limits are lent: other runs there may take hours.
func (w *Worker) awaitSolitude(r *run, atMost time.Duration) error {
	if err := r.claim.Idle(r.ctx, whyAlone); err != nil {
		return err
	}
	if err := r.claim.Lend(r.ctx); err != nil {
		return err
	}
	w.wakeLines(r.detached, r.claim.Record())
	waiting, cancel := context.WithTimeout(r.ctx, atMost)
	defer cancel()
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
	if n, _ := r.slot.others(); n > 0 && strict(r.claim.Record()) {
		return goOn(r.claim.Record())
	}
	return r.claim.TakeBack(r.ctx)
}
