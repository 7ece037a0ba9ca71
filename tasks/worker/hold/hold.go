// Package hold keeps a worker's claim on a task while the worker works on it, and says for which cause that work is
// stopped.
package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// How long a worker tries to store a result while Redis is unreachable. During a drain the limit has to fit into the
// container's stop timeout.
const (
	persistFor      = 2 * time.Minute
	persistDraining = 15 * time.Second
)

// Causes for which a worker stops a run. They are context causes: the first one wins and decides the ending. A person's
// is a [record.Cancellation].
var (
	ErrDrain     = errors.New("the worker is shutting down")
	ErrClaimLost = errors.New("the claim on the thread was lost")
)

// Hold is a worker's hold on a claimed task. Its contexts are detached from asynq's, which ends when asynq considers
// the delivery timed out and gives it to another worker (docs/decisions/0001-claims.md). One goroutine calls its
// methods; the contexts are for all.
type Hold struct {
	Claim *store.Claim
	// Ctx ends with the first cause for which the run is stopped, which is errand's own.
	Ctx context.Context
	// Detached never ends; for storing and posting.
	Detached context.Context
	// Life ends when the claim is released; for background work of the report.
	Life context.Context

	drained       context.Context
	log           *slog.Logger
	stop          func()
	endLife       context.CancelFunc
	background    sync.WaitGroup
	refusingSince time.Time // when Redis began to refuse results; zero if it does not
}

// New keeps a claim renewed until Release. The run is stopped by a cancel, by the end of drained, which is the worker's
// drain, or by the loss of the claim.
func New(ctx context.Context, claim *store.Claim, drained context.Context, log *slog.Logger) *Hold {
	h := &Hold{
		Claim: claim, Detached: logline.WithRun(context.WithoutCancel(ctx), claim.ID()), drained: drained, log: log,
	}
	run, stop := context.WithCancelCause(h.Detached)
	h.Ctx = run
	h.Life, h.endLife = context.WithCancel(h.Detached)
	forget := context.AfterFunc(drained, func() { stop(ErrDrain) })
	h.stop = func() {
		forget()
		stop(nil)
	}
	if rec := claim.Record(); rec.CancelCause != "" {
		stop(record.CancellationOf(rec))
	}
	h.Go(func() {
		claim.Keep(h.Life, store.Watch{
			Cancelled: func(by, cause string) { stop(record.Cancellation{By: by, Cause: cause}) },
			Lost: func(err error) {
				log.Warn("lose claim", "run", claim.ID(), "err", err)
				stop(ErrClaimLost)
			},
		})
	})
	return h
}

// Cause returns why the run was stopped, or nil if it was not.
func (h *Hold) Cause() error { return context.Cause(h.Ctx) }

// Go calls f in a goroutine that Release waits for. f returns when Life ends.
func (h *Hold) Go(f func()) { h.background.Go(f) }

// Stop ends Ctx, without a cause if there was none.
func (h *Hold) Stop() { h.stop() }

// Release releases the claim, so that the thread's next task can start, and waits for the goroutines of Go.
func (h *Hold) Release() {
	// The claim may be released already or belong to another worker. If Redis is unreachable, it expires.
	_ = h.Claim.Release(h.Detached)
	h.endLife()
	h.background.Wait()
}

// Persist repeats step until Redis accepts it, for at most persistFor, or persistDraining during a drain. done is false
// if another worker has the claim.
func (h *Hold) Persist(what string, step func() error) (done bool, _ error) {
	for {
		err := step()
		if err == nil {
			h.refusingSince = time.Time{}
			return true, nil
		}
		if h.refusingSince.IsZero() {
			h.refusingSince = time.Now() // all results of the run share one time limit
		}
		if errors.Is(err, store.ErrStale) {
			h.log.Warn("claim lost", "run", h.Claim.ID(), "err", err)
			return false, nil
		}
		patience := persistFor
		if h.drained.Err() != nil {
			patience = persistDraining
		}
		if errors.Is(err, store.ErrTooLarge) || time.Since(h.refusingSince) > patience {
			return false, fmt.Errorf("%s task %s: %w", what, h.Claim.ID(), err)
		}
		<-time.After(500 * time.Millisecond)
	}
}
