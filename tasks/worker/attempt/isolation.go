package attempt

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/errand-fleet/errand/internal/jitter"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

// If a worker dies, any of the tasks that ran on it may be the cause, so all of them are suspects. After a first death
// they start at once, on any free slot, because nearly all of them are innocent and people wait for them. They only
// spread over the workers, so that fewer lose a second worker if one of them is the cause. A suspect whose next death
// would be its last gets a worker without other runs: no task is given up for a death that another may have caused.

// isolation keeps suspects apart. It is safe for concurrent use.
type isolation struct {
	health *machine.Health
	alone  time.Duration // Timing.Alone
	limit  time.Duration // of runs; 0 for none
}

const (
	// whyAlone is the reason shown to people while a suspect waits for solitude, and whySpread while it looks for
	// another worker.
	whyAlone  = "it needs a worker without other runs, because two workers died while it ran"
	whySpread = "it looks for a worker without other interrupted tasks, because a worker died while it ran"
	// spreadStep is how long a suspect looks for another worker for each suspect on this one, up to spreadMost of
	// them. Then it starts beside any number of them.
	spreadStep = time.Second
	spreadMost = 2
	// searches is the fraction of Timing.Alone during which a suspect looks for an idle worker in the fleet before it
	// waits on one.
	searches = 12
	longest  = 2 * time.Hour // the longest run, if runs have no limit
	// how long a suspect waits before it is delivered again, ± 50 %
	postponeLeast = 2 * time.Second
	postponeMost  = 3 * time.Minute
)

// strict reports whether a suspect must not share its worker, because its next crash would end it.
func strict(rec store.Record) bool { return rec.Crashes+1 >= record.MaxCrashes }

// searched returns how long after the crash a suspect was claimed; 0 if the time of the crash is unknown.
func searched(rec store.Record) time.Duration {
	if rec.Crashed.IsZero() {
		return 0
	}
	return max(0, rec.Started.Sub(rec.Crashed))
}

// patience returns how long a strict suspect may keep its worker from starting anything while other runs there
// continue. With 0 it looks for an idle worker instead. After that time it gives the worker back, and holds one again
// for the second half of each doubling of its waiting time. Holding is limited to the duration of the longest run,
// followed by an equal pause, so one suspect never takes more than half of one worker for long.
func (i *isolation) patience(rec store.Record) time.Duration {
	waited, span := searched(rec), i.alone
	if waited < span/searches {
		return 0
	}
	if waited < span {
		return span - waited
	}
	waited -= span
	for most := 2 * cmp.Or(i.limit, longest); span < most && waited >= span; {
		waited -= span
		span = min(2*span, most)
	}
	if waited %= span; waited < span/2 {
		return 0
	}
	return span - waited
}

// postpone makes a strict suspect wait, for seconds at first and for minutes later.
func postpone(rec store.Record) error {
	return tasks.Later(jitter.Around(min(max(postponeLeast, searched(rec)/32), postponeMost)), whyAlone)
}

// accept spreads suspects over the workers. A strict one is postponed while it can look for an idle worker, and on a
// worker that another suspect has reserved; if it finds the worker empty, it reserves it. accept makes no requests,
// because it runs every few seconds. A crash counts against the suspect afterwards, unless idle is set, which is the
// case for a strict one beside which others run: isolate then counts it in.
func (i *isolation) accept(r *run) (idle bool, err error) {
	rec := r.Claim.Record()
	if rec.Crashes == 0 {
		return false, nil
	}
	if !strict(rec) {
		if err := spread(r, rec); err != nil {
			return true, err
		}
		return false, r.Claim.Idle(r.Ctx, "") // claim.lua has set the reason
	}
	if n, _ := r.slot.Others(); n > 0 && i.patience(rec) == 0 || !r.slot.MayReserve() {
		return true, postpone(rec) // random delays separate them the next time
	}
	if !r.slot.Reserve(true) {
		return true, nil
	}
	return false, r.Claim.Idle(r.Ctx, "")
}

// spread postpones a suspect for a moment if other suspects run on its worker, because another worker may have none.
func spread(r *run, rec store.Record) error {
	looked := searched(rec)
	allowed := int(looked / spreadStep)
	if allowed >= spreadMost {
		allowed = math.MaxInt
	}
	n, joined := r.slot.JoinSuspects(allowed)
	if joined {
		return nil
	}
	wait := time.Duration(min(n, spreadMost))*spreadStep - looked
	return &tasks.ErrLater{At: time.Now().Add(wait), Why: whySpread} // too short to inform people
}

// isolate makes sure that a strict suspect runs without other runs. It waits for at most its patience until the
// worker's other runs have ended; meanwhile nothing new starts there. idle is the result of accept.
func (i *isolation) isolate(r *run, idle bool) error {
	rec := r.Claim.Record()
	if rec.Crashes == 0 || !strict(rec) {
		return nil
	}
	if !r.slot.Reserve(false) {
		return postpone(rec)
	}
	if n, _ := r.slot.Others(); n > 0 {
		patience := i.patience(rec)
		if patience == 0 {
			return postpone(rec)
		}
		if err := i.awaitSolitude(r, patience); err != nil {
			return err
		}
		idle = true
	}
	if !idle {
		return nil
	}
	return r.Claim.Idle(r.Ctx, "")
}

// awaitSolitude waits at most atMost until no other run is on the worker, and then postpones the suspect. It stops
// waiting if the worker can no longer run tasks. Meanwhile it lends the suspect's places under the fleet's
// limits, because other runs there may take hours.
func (i *isolation) awaitSolitude(r *run, atMost time.Duration) error {
	if err := r.Claim.Idle(r.Ctx, whyAlone); err != nil {
		return err
	}
	if err := r.Claim.Lend(r.Ctx); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(r.Ctx, atMost)
	defer cancel()
	for n, freed := r.slot.Others(); n > 0 && waiting.Err() == nil; n, freed = r.slot.Others() {
		ready, turned := i.health.Changes()
		if !ready {
			return machine.Unable()
		}
		select {
		case <-freed:
		case <-turned:
		case <-waiting.Done():
		}
	}
	if r.Ctx.Err() != nil {
		return r.Cause()
	}
	if n, _ := r.slot.Others(); n > 0 {
		return postpone(r.Claim.Record())
	}
	return r.Claim.TakeBack(r.Ctx)
}
