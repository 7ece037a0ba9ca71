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

// How long a task waits before it asks again for what it lacks.
const (
	slotWait = time.Second
	busyWait = 2 * time.Second // for its thread, whose release wakes it, so that this only bounds a missed wake; for a place under a cap
)

// maxAttempts bounds how often a task is tried when errand itself does not work.
const maxAttempts = 3

// maxCrashes bounds how many workers one task may take down with it.
const maxCrashes = 3

// How long a worker tries to store what a run came to while Redis does not answer. A drain has to fit into what the container's stop
// allows.
const (
	persistFor      = 2 * time.Minute
	persistDraining = 15 * time.Second
)

// run is a claimed task. Its context is detached from asynq's, which ends when asynq thinks that it should and takes the delivery
// away at that moment (queue.md §1); it ends by our own causes only.
type run struct {
	claim    *store.Claim
	slot     *slot
	logs     runLogs
	ctx      context.Context // ends with the first cause
	detached context.Context // outlives every cause: for storing and posting
	life     context.Context // ends when the claim is given up: for what the report starts

	end    context.CancelFunc
	kept   sync.WaitGroup
	done   func() // takes the run from the worker's list
	report *pendingReport
	mail   *mailbox // nil until the task was read
	next   func()   // wakes the thread's next task

	// What the steps of the flow found out, each for those after it. Of the flow's goroutine.
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

	away time.Time // since when Redis has not taken what the run came to; zero: it does. Of the flow's goroutine
}

// hold keeps the claim and lets the run be stopped: by whoever cancels the task, by the worker's drain, by the loss of the claim.
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

// wakeNext lets the next task of a thread that was given up start now. It would by itself after busyWait.
func (w *Worker) wakeNext(ctx context.Context, thread string) {
	next, err := w.store.Threads.Next(ctx, thread)
	if err != nil {
		return // there is none, or Redis is away
	}
	w.queue.Wake(next.ID, next.Class, next.Delivery)
}

// wakeLines lets those start now that have waited longest for a place in a scope of a task that runs no more. They would ask by themselves.
func (w *Worker) wakeLines(ctx context.Context, rec store.Record) {
	for _, c := range w.cfg.caps() {
		for _, scope := range c.Of(rec.Scopes) {
			if next, err := w.store.InLine(ctx, scope); err == nil {
				w.queue.Wake(next.ID, next.Class, next.Delivery)
			}
		}
	}
}

// cause is what stopped the run, nil while nothing has.
func (r *run) cause() error { return context.Cause(r.ctx) }

// release gives up the thread, so that its next task may start.
func (r *run) release() {
	r.done()
	r.report.leave() // the next run of the task looks for what this one posted
	// Already returned, or somebody else's: then there is nothing to release. An unreachable Redis lets it expire.
	_ = r.claim.Release(r.detached)
	r.end()
	r.kept.Wait()
	r.next()
}

// end gives the task its ending; false when it is not ours to end any more.
func (w *Worker) end(r *run, e tasks.Ending) (stored bool, err error) {
	e.Reason = w.cfg.Policy.Redactor.String(e.Reason)
	if !e.Found { // else it is what the message says
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

// persist stores what a run came to, however long Redis takes, within reason: until then the work is not done. done is false when
// the task is not ours any more.
func (w *Worker) persist(r *run, what string, step func() error) (done bool, _ error) {
	for {
		err := step()
		if err == nil {
			r.away = time.Time{}
			return true, nil
		}
		if r.away.IsZero() {
			r.away = time.Now() // one patience for all that is to be stored
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

// read decodes the task of a record and finds its source.
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

// Causes for which a worker stops a run. They travel as context causes: the first one wins, and decides the ending.
var (
	errDrain     = errors.New("the worker is shutting down")
	errClaimLost = errors.New("the claim on the thread is lost")
)

// liveRuns are the runs of this worker, to be interrupted by its drain.
type liveRuns struct {
	mu    sync.Mutex
	stops map[int]context.CancelCauseFunc
	next  int
	cause error // set once drained
}

// add registers a run until forget is called. During a drain it is stopped at once.
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

// drain stops all runs, present and to come.
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
