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

// health is the state of this worker's CLI. While the CLI cannot be used, the worker takes no tasks (DESIGN invariant
// 11) and checks the CLI more often, so that a fix takes effect soon.
type health struct {
	runner Runner
	min    string
	fresh  time.Duration // how long a good result is valid
	log    *slog.Logger
	news   chan struct{} // holds a token when the result of ready may have changed

	asking sync.Mutex // one check at a time, because a check starts the CLI twice

	mu     sync.Mutex
	last   agent.Health
	at     time.Time
	turned chan struct{} // closed when last changes, and set to nil; nil until turns is called
}

// unableChecks is how many times more often the CLI is checked while it cannot be used.
const unableChecks = 12

// watch checks the CLI at once and then once per rhythm, until ctx ends.
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

// check checks the CLI now.
func (h *health) check(ctx context.Context) {
	begun := time.Now()
	h.asking.Lock()
	defer h.asking.Unlock()
	if h.since(begun) {
		return // another check ended while this one waited
	}
	answer := h.runner.Health(ctx, h.min)
	if ctx.Err() != nil {
		return // the check was interrupted and says nothing about the CLI
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

// since reports whether the latest check ended after t. With the zero time it reports whether there was a check.
func (h *health) since(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at.After(t)
}

// ready reports whether the latest check found a usable CLI.
func (h *health) ready() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.OK
}

// turns returns ready, and a channel that is closed when the result changes.
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

// known returns the latest result.
func (h *health) known() agent.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// problem returns nil if a run can start here. Otherwise it returns an error with which the task waits for another
// worker.
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

// unable hands back a task that this worker cannot run, without counting an attempt. No thread is informed: another
// worker takes the task at once, or outageNotes says that there is no such worker.
func unable() *tasks.ErrLater {
	return &tasks.ErrLater{At: time.Now(), Why: "the worker that took it cannot run tasks"}
}

// machineClasses are failures that may be caused by this worker rather than by the task.
var machineClasses = []agent.Class{agent.ClassCLIMissing, agent.ClassCLIVersion, agent.ClassAuth, agent.ClassConfig, agent.ClassStart}

// blame checks the CLI again after a failure that may be the worker's fault, because the last check may be older than
// what broke the CLI. An error hands the task back; nil means that the failure is the task's.
func (h *health) blame(ctx context.Context, failure *agent.Error) error {
	if failure == nil || !slices.Contains(machineClasses, failure.Class) {
		return nil
	}
	if h.check(ctx); !h.ready() {
		return unable()
	}
	return nil
}
