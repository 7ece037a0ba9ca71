package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// If a worker dies, any of the tasks that ran on it may be the cause, so all of them are suspects. Two suspects do
// not run on one worker at the same time, unless one of them has run there for long: then the next death has one
// suspect only. If possible soon, a suspect gets a worker without other runs, so that a culprit does not kill those.
// A suspect whose next death would be its last always does: no task is given up for a death that another may have
// caused.

// whyAlone is why a suspect waits, for people.
const whyAlone = "it needs a worker without other runs, because a worker died while it ran"

// searches is the fraction of Timing.Alone during which a suspect looks for an idle worker in the fleet before it
// waits on one.
const searches = 12

// innocent times Timing.Alone is how long a suspect has to run before another one may start on the same worker.
// Otherwise, after a crash of a machine with many long runs, they would run one after the other.
const innocent = 10

// longest is the assumed duration of the longest run if runs have no limit.
const longest = 2 * time.Hour

// goOnMost is the longest wait of a suspect before it is delivered again, ± 50 %.
const goOnMost = 3 * time.Minute

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

// goOn postpones a suspect: at first by seconds, in the end by minutes.
func goOn(rec store.Record) error {
	return tasks.Later(around(min(max(busyWait, searched(rec)/32), goOnMost)), whyAlone)
}

// elsewhere postpones a suspect while it can look for an idle worker, and on a worker where another suspect keeps it
// from starting. It makes no requests, because it runs every few seconds. After it, a crash counts against the
// suspect, except a strict one beside which others run. A strict suspect that finds the worker empty reserves it.
func (w *Worker) elsewhere(r *run) error {
	rec := r.claim.Record()
	if rec.Crashes == 0 {
		return nil
	}
	if n, _ := r.slot.others(); n > 0 && w.patience(rec) == 0 || r.slot.reserved() {
		return goOn(rec) // random delays separate them the next time
	}
	if strict(rec) && !r.slot.reserveEmpty() {
		return nil
	}
	return r.claim.Idle(r.ctx, "") // claim.lua has set the reason
}

// isolate makes sure that a suspect runs without other runs, or at least without another suspect. It waits for at
// most its patience until the worker's other runs have ended; meanwhile nothing new starts there.
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

// awaitSolitude waits at most atMost until no other run is on the worker, and then postpones a strict suspect. It
// stops waiting if the worker can no longer run tasks. Meanwhile it lends the suspect's places under the fleet's
// limits, because other runs there may take hours.
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
