package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

const (
	maxAttempts = 3 // tries of a task if the infrastructure fails

	// sourceWait is how long a task waits for a worker that is set up for its source, ± 50 %.
	sourceWait = 500 * time.Millisecond

	// How long a worker tries to store a result while Redis is unreachable. During a drain the limit has to fit into
	// the container's stop timeout.
	persistFor      = 2 * time.Minute
	persistDraining = 15 * time.Second
)

// run is a claimed task. Its context is detached from asynq's, which ends when asynq considers the delivery timed out
// and gives it to another worker (docs/decisions/0001-claims.md). The run's context ends only for errand's own causes.
type run struct {
	claim    *store.Claim
	slot     *machine.Slot
	logs     runLogs
	ctx      context.Context // cancelled with the first cause
	detached context.Context // never cancelled; for storing and posting
	life     context.Context // cancelled when the claim is released; for background work of the report

	endCtx     func()
	endLife    context.CancelFunc
	background sync.WaitGroup
	worker     *Worker

	// Set by the goroutine of process, which alone uses them.
	report    *pendingReport
	source    string       // name of the task's source; set by accept
	mail      *mailbox     // nil until accept has decoded the task
	result    agent.Result // zero until the agent has run
	repos     []string     // see conversation; set by prepare
	reached   []string     // hosts that are to be proposed as the egress list
	lines     int          // changed lines of the change that it reviews
	verifying time.Time    // when the first checks began; zero before
	stuck     bool         // a process of the checks could not be stopped
	away      time.Time    // when Redis began to refuse the run's results; zero if it does not
}

// hold keeps the claim renewed and returns a run that is stopped by a cancel, by the worker's drain or by the loss of
// the claim.
func (w *Worker) hold(ctx context.Context, claim *store.Claim, s *machine.Slot) *run {
	r := &run{claim: claim, slot: s, detached: logline.WithRun(context.WithoutCancel(ctx), claim.ID()), worker: w}
	var stop context.CancelCauseFunc
	r.ctx, stop = context.WithCancelCause(r.detached)
	r.life, r.endLife = context.WithCancel(r.detached)
	forget := context.AfterFunc(w.drained, func() { stop(errDrain) })
	r.endCtx = func() { forget(); stop(nil) }
	if rec := claim.Record(); rec.CancelCause != "" {
		stop(tasks.CancellationOf(rec))
	}
	r.background.Go(func() {
		claim.Keep(r.life, store.Watch{
			Cancelled: func(by, cause string) { stop(tasks.Cancellation{By: by, Cause: cause}) },
			Lost: func(err error) {
				w.cfg.Log.Warn("lose claim", "run", claim.ID(), "err", err)
				stop(errClaimLost)
			},
		})
	})
	return r
}

// cause returns why the run was stopped, or nil if it was not.
func (r *run) cause() error { return context.Cause(r.ctx) }

// leave ends errand's work for the run.
func (r *run) leave() {
	r.release()
	r.uploadLogs() // the thread's next task does not wait for it
}

// release releases the claim, so that the thread's next task can start.
func (r *run) release() {
	r.endCtx()
	r.report.leave() // the next run of the task finds what this report has posted
	// The claim may be released already or belong to another worker. If Redis is unreachable, it expires.
	_ = r.claim.Release(r.detached)
	r.endLife()
	r.background.Wait()
	r.worker.cfg.deliver(r.detached)
}

// end stores the task's ending. stored is false if another worker has the claim.
func (w *Worker) end(r *run, e tasks.Ending) (stored bool, err error) {
	e.Reason = w.cfg.Policy.Redactor.String(e.Reason)
	if e.Result.Error != nil {
		failure := *e.Result.Error
		failure.Message = w.cfg.Policy.Redactor.String(failure.Message)
		e.Result.Error = &failure
	}
	if !e.Found { // a found ending already lists what its message covers
		e.Covers = r.mail.covered()
	}
	body, with := e.Encode(), store.Covered{IDs: e.Covers, Ending: e.ForAbsorbed(r.claim.ID())}
	stored, err = r.persist("end", func() error { return r.claim.EndWith(r.detached, body, with) })
	if r.claim.Restored() {
		w.cfg.Log.Warn("task restored: redis had lost it", "run", r.claim.ID(), "thread", r.claim.Thread())
	}
	if !stored && err == nil {
		w.cfg.Meter.Returned(r.claim.Record().Class, ReturnLost)
	}
	if stored && e.Found {
		w.endCovered(r, e)
	}
	return stored, err
}

// notice adds an event to the run's events that says what happens to its task outside the run.
func (r *run) notice(text string) {
	text = r.worker.cfg.Policy.Redactor.String(text)
	e := agent.Event{Kind: agent.Notice, Text: text, Time: time.Now()}
	r.report.Update(e)
	r.worker.cfg.warn(r.claim.Append(r.detached, format.JSON(e)), "store events", "run", r.claim.ID())
}

// persist repeats step until Redis accepts it, for at most persistFor, or persistDraining during a drain. done is
// false if another worker has the claim.
func (r *run) persist(what string, step func() error) (done bool, _ error) {
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
			r.worker.cfg.Log.Warn("claim lost", "run", r.claim.ID(), "err", err)
			return false, nil
		}
		patience := persistFor
		if r.worker.drained.Err() != nil {
			patience = persistDraining
		}
		if errors.Is(err, store.ErrTooLarge) || time.Since(r.away) > patience {
			return false, fmt.Errorf("%s task %s: %w", what, r.claim.ID(), err)
		}
		<-time.After(500 * time.Millisecond)
	}
}

// Causes for which a worker stops a run. They are context causes: the first one wins and decides the ending.
var (
	errDrain     = errors.New("the worker is shutting down")
	errClaimLost = errors.New("the claim on the thread was lost")
)

// deliver enqueues what may start now, instead of when the leader looks.
func (c *Config) deliver(ctx context.Context) { c.warn(c.Queue.Deliver(ctx), "make deliveries") }

// briefer asks what a task may do now, and what its source tells the agent about it. It is safe for concurrent use.
type briefer struct{ *Config }

// permit limits the profile of a task to what the policy and the rights of its asker allow now. An *tasks.InputError
// refuses the task. limited says why the run may only read although the task asks for more; empty: it may do all.
func (d *briefer) permit(ctx context.Context, t tasks.Task) (_ tasks.Task, limited string, _ error) {
	t, err := d.Policy.Now(t)
	if err != nil {
		return t, "", err
	}
	t.Profile, limited, err = d.Policy.Permit(ctx, d.Store, t, d.Runner.Sandboxed())
	return t, limited, err
}

// brief returns the source's brief of a task, with the pictures that are stored for the task.
func (d *briefer) brief(ctx context.Context, s tasks.Source, t tasks.Task, files string) (tasks.Brief, error) {
	b, err := s.Brief(ctx, t, files)
	if err != nil {
		return tasks.Brief{}, fmt.Errorf("brief: %w", err)
	}
	if len(t.Pictures) == 0 {
		return b, nil
	}
	data, err := d.Store.Pictures.Read(ctx, t.ID)
	if err != nil {
		return tasks.Brief{}, err
	}
	for i, p := range t.Pictures {
		if i >= len(data) {
			b.Prompt.Text = cmp.Or(b.Prompt.Text,
				t.Prompt) + fmt.Sprintf("\n\n(The picture %q came with this message but is no longer stored.)", p.Name)
			continue
		}
		b.Prompt.Files = append(b.Prompt.Files, agent.File{Name: p.Name, Type: p.Type, Data: data[i]})
	}
	return b, nil
}
