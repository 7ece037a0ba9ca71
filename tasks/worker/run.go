package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Delays after which a task that lacks something is delivered again.
const (
	slotWait = time.Second
	busyWait = 2 * time.Second // for its thread or a place under a cap; a release wakes the task earlier, so this bounds a missed wake
)

// maxAttempts bounds how often a task is tried if the infrastructure fails.
const maxAttempts = 3

// maxCrashes bounds how many workers may die while they run one task.
const maxCrashes = 3

// How long a worker tries to store a result while Redis is unreachable. During a drain the limit has to fit into the
// container's stop timeout.
const (
	persistFor      = 2 * time.Minute
	persistDraining = 15 * time.Second
)

// run is a claimed task. Its context is detached from asynq's context, which ends when asynq decides that the
// delivery timed out and gives it away at that moment (queue.md §1). The run's context ends only for errand's own
// causes.
type run struct {
	claim    *store.Claim
	slot     *slot
	logs     runLogs
	ctx      context.Context // cancelled with the first cause
	detached context.Context // never cancelled; for storing and posting
	life     context.Context // cancelled when the claim is released; for background work of the report

	end    context.CancelFunc
	kept   sync.WaitGroup
	done   func() // removes the run from the worker's live runs
	report *pendingReport
	mail   *mailbox // nil until accept has decoded the task
	next   func()   // wakes the thread's next task

	// Results of the steps in execute, each for the steps after it. Used only by the goroutine of process.
	task    tasks.Task
	source  tasks.Source
	files   string // the thread's directory for files
	words   tasks.Brief
	before  *resumeState
	answers *answers
	place   place
	talked  conversation
	spec    agent.Spec
	result  agent.Result

	away time.Time // when Redis began to refuse the run's results; zero if it does not. Used only by the goroutine of process
}

// hold keeps the claim renewed and returns a run that is stopped by a cancel, by the worker's drain or by the loss of
// the claim.
func (w *Worker) hold(ctx context.Context, claim *store.Claim, s *slot) *run {
	r := &run{claim: claim, slot: s, detached: withRun(context.WithoutCancel(ctx), claim.ID())}
	var stop context.CancelCauseFunc
	r.ctx, stop = context.WithCancelCause(r.detached)
	r.life, r.end = context.WithCancel(r.detached)
	forget := w.live.add(stop)
	r.done = func() { forget(); stop(nil) }
	r.next = func() {
		w.wakeNext(r.detached, claim.Thread())
		w.wakeLines(r.detached, claim.Record())
	}
	if rec := claim.Record(); rec.CancelCause != "" {
		stop(tasks.CancellationOf(rec))
	}
	r.kept.Go(func() {
		claim.Keep(r.life, store.Watch{
			Cancelled: func(by, cause string) { stop(tasks.Cancellation{By: by, Cause: cause}) },
			Lost: func(err error) {
				w.log.Warn("lose claim", "run", claim.ID(), "err", err)
				stop(errClaimLost)
			},
		})
	})
	return r
}

// wakeNext delivers the next task of a released thread now instead of after busyWait.
func (w *Worker) wakeNext(ctx context.Context, thread string) {
	next, err := w.store.Threads.Next(ctx, thread)
	if err != nil {
		return // no task waits, or Redis is unreachable
	}
	w.queue.Wake(next.ID, next.Class, next.Delivery)
}

// wakeLines wakes, for each cap that the finished task counted in, the task that has waited longest for a place.
// Without it they would be delivered again after busyWait.
func (w *Worker) wakeLines(ctx context.Context, rec store.Record) {
	for _, c := range w.cfg.caps() {
		for _, scope := range c.Of(rec.Scopes) {
			if next, err := w.store.InLine(ctx, scope); err == nil {
				w.queue.Wake(next.ID, next.Class, next.Delivery)
			}
		}
	}
}

// cause returns why the run was stopped, or nil if it was not.
func (r *run) cause() error { return context.Cause(r.ctx) }

// release releases the claim, so that the thread's next task can start.
func (r *run) release() {
	r.done()
	r.report.leave() // the next run of the task finds what this report has posted
	// The claim may be released already or belong to another worker. If Redis is unreachable, it expires.
	_ = r.claim.Release(r.detached)
	r.end()
	r.kept.Wait()
	r.next()
}

// end stores the task's ending. stored is false if another worker has the claim.
func (w *Worker) end(r *run, e tasks.Ending) (stored bool, err error) {
	e.Reason = w.cfg.Policy.Redactor.String(e.Reason)
	if !e.Found { // a found ending already lists what its message covers
		e.Covers = r.mail.covered()
	}
	body, with := e.Encode(), store.Covered{IDs: e.Covers, Ending: e.ForAbsorbed(r.claim.ID())}
	stored, err = w.persist(r, "end", func() error { return r.claim.EndWith(r.detached, body, with) })
	if r.claim.Restored() {
		w.log.Warn("task restored: redis had lost it", "run", r.claim.ID(), "thread", r.claim.Thread())
	}
	if !stored && err == nil {
		w.meter.Returned(r.claim.Record().Class, ReturnLost)
	}
	if stored && e.Found {
		w.endCovered(r, e)
	}
	return stored, err
}

// persist repeats step until Redis accepts it, for at most persistFor, or persistDraining during a drain. done is
// false if another worker has the claim.
func (w *Worker) persist(r *run, what string, step func() error) (done bool, _ error) {
	for {
		err := step()
		if err == nil {
			r.away = time.Time{}
			return true, nil
		}
		if r.away.IsZero() {
			r.away = time.Now() // all results of the run share one time limit
		}
		if errors.Is(err, store.ErrStale) {
			w.log.Warn("claim lost", "run", r.claim.ID(), "err", err)
			return false, nil
		}
		patience := persistFor
		if w.live.draining() {
			patience = persistDraining
		}
		if errors.Is(err, store.ErrTooLarge) || time.Since(r.away) > patience {
			return false, fmt.Errorf("%s task %s: %w", what, r.claim.ID(), err)
		}
		<-time.After(500 * time.Millisecond)
	}
}

// read decodes the task of a record and returns its source.
func (w *Worker) read(rec store.Record) (tasks.Task, tasks.Source, error) {
	t, err := tasks.ReadTask(rec)
	if bad, ok := errors.AsType[*tasks.UnreadableError](err); ok {
		w.noteUnreadable(context.Background(), bad)
		return t, nil, err
	}
	for _, s := range w.cfg.Sources {
		if s.Name() == t.Source {
			return t, s, nil
		}
	}
	return t, nil, fmt.Errorf("task %s is from source %q, which this worker does not have", t.ID, t.Source)
}

// Causes for which a worker stops a run. They are context causes: the first one wins and decides the ending.
var (
	errDrain     = errors.New("the worker is shutting down")
	errClaimLost = errors.New("the claim on the thread is lost")
)

// liveRuns holds the runs of this worker, so that a drain can stop them.
type liveRuns struct {
	mu    sync.Mutex
	stops map[int]context.CancelCauseFunc
	next  int
	cause error // set once drained
}

// add registers a run until forget is called. If the worker is draining, the run is stopped at once.
func (l *liveRuns) add(stop context.CancelCauseFunc) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops == nil {
		l.stops = map[int]context.CancelCauseFunc{}
	}
	if l.cause != nil {
		stop(l.cause)
	}
	n := l.next
	l.next++
	l.stops[n] = stop
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.stops, n)
	}
}

// drain stops all runs, including those that are added later.
func (l *liveRuns) drain(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, stop := range l.stops {
		stop(cause)
	}
}

func (l *liveRuns) draining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil
}
