package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// health is what is known of this worker's CLI. While the answer is bad the worker takes no tasks (DESIGN invariant 11), and the CLI is asked
// more often, so that a remedy works soon.
type health struct {
	runner Runner
	min    string
	fresh  time.Duration // how long a good answer is believed
	log    *slog.Logger
	news   chan struct{} // holds a token when ready may answer otherwise than before

	asking sync.Mutex // one question at a time: it starts the CLI twice

	mu     sync.Mutex
	last   agent.Health
	at     time.Time
	turned chan struct{} // closed and replaced when last is another; nil until somebody waits for that
}

// unableChecks is how many times more often the CLI is asked while it cannot be used.
const unableChecks = 12

// watch asks the CLI at once and then in a rhythm, until ctx ends.
func (h *health) watch(ctx context.Context, rhythm time.Duration) {
	for {
		h.check(ctx)
		wait := rhythm
		if !h.ready() {
			wait /= unableChecks
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// check asks the CLI.
func (h *health) check(ctx context.Context) {
	begun := time.Now()
	h.asking.Lock()
	defer h.asking.Unlock()
	if h.since(begun) {
		return // somebody has asked while we waited
	}
	answer := h.runner.Health(ctx, h.min)
	if ctx.Err() != nil {
		return // broken off: it says nothing of the CLI
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	first, before := h.at.IsZero(), h.last
	h.last, h.at = answer, time.Now()
	if !first && before.OK == answer.OK && before.Problem == answer.Problem {
		return
	}
	if answer.OK {
		h.log.Info("worker can run tasks", "cli", answer.Path, "version", answer.Version)
	} else {
		h.log.Error("worker cannot run tasks and takes none", "problem", answer.Problem, "remedy", answer.Remedy)
	}
	if h.turned != nil {
		close(h.turned)
		h.turned = nil
	}
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// since reports whether there is an answer from after t; the zero time asks for any.
func (h *health) since(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at.After(t)
}

// ready reports whether the latest answer was good.
func (h *health) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.OK
}

// turns is ready, and what is closed when there is another answer.
func (h *health) turns() (ready bool, turned <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turned == nil {
		h.turned = make(chan struct{})
	}
	return h.last.OK, h.turned
}

func (h *health) good() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.OK && time.Since(h.at) < h.fresh
}

// known is the latest answer.
func (h *health) known() agent.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// problem is why no run can start here, nil when one can: then the task waits for a worker that can run it.
func (h *health) problem(ctx context.Context) error {
	if !h.good() {
		h.check(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !h.ready() {
		return unable()
	}
	return nil
}

// unable hands a task back that this worker cannot run, without an attempt being counted. Nobody is told: another worker takes it at once, or
// tellUnable says that there is none.
func unable() *tasks.ErrLater {
	return &tasks.ErrLater{At: time.Now(), Why: "the worker that took it cannot run tasks"}
}

// machineClasses are failures that may be this worker's and not the task's.
var machineClasses = []agent.Class{agent.ClassCLIMissing, agent.ClassCLIVersion, agent.ClassAuth, agent.ClassConfig, agent.ClassStart}

// blame asks the CLI anew after a run failed in a way that may be the worker's own: the answer the run was started on may be older than
// what broke the CLI. The error hands the task back; nil: the failure is the task's.
func (h *health) blame(ctx context.Context, failure *agent.Error) error {
	if failure == nil || !slices.Contains(machineClasses, failure.Class) {
		return nil
	}
	if h.check(ctx); !h.ready() {
		return unable()
	}
	return nil
}
