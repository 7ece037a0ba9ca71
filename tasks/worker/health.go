package worker

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// health is the state of this worker's CLI and disks, and of the settings of Redis. While these cannot be used, the
// worker takes no tasks and checks them more often, so that a fix takes effect soon.
type health struct {
	*Config

	disks *disks

	news chan struct{} // holds a token when the worker may have become able or unable to take tasks

	asking sync.Mutex // one check at a time, because a check starts the CLI twice

	mu     sync.Mutex
	last   healthState
	turned chan struct{} // closed when last changes, and set to nil; nil until turns is called
}

// healthState is the result of a check; zero before the first one.
type healthState struct {
	agent.Health
	at  time.Time   // when the check ended
	cli os.FileInfo // the CLI's file when the check began; nil if unknown
}

// unableChecks is how many times more often the CLI is checked while it cannot be used.
const unableChecks = 12

// watch checks the CLI at once and then from time to time, until ctx ends.
func (h *health) watch(ctx context.Context) {
	for {
		h.check(ctx)
		wait := h.Timing.Health
		if !h.state().OK {
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
	if h.state().at.After(begun) {
		return // another check ended while this one waited
	}
	cli, _ := os.Stat(h.state().Path) // before the check, so that a change during it counts
	answer := h.Runner.Health(ctx)
	if cli == nil || answer.Path != h.state().Path {
		cli, _ = os.Stat(answer.Path)
	}
	if bad := h.diskProblem(ctx); answer.OK && bad != nil {
		answer.OK, answer.Problem, answer.Sentence, answer.Remedy = false, bad.problem, bad.sentence, bad.remedy
	}
	if bad := h.redisProblem(ctx); answer.OK && bad != nil {
		answer.OK, answer.Problem, answer.Remedy = false, "Redis: "+bad.What, bad.Remedy
		answer.Sentence = "The settings of Redis would lose tasks. An operator must correct them."
	}
	answer.Problem = h.Policy.Redactor.String(answer.Problem) // it may quote what the CLI says
	if ctx.Err() != nil {
		return // the check was interrupted and says nothing about the CLI
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	h.last = healthState{answer, time.Now(), cli}
	if !before.at.IsZero() && before.OK == answer.OK && before.Problem == answer.Problem {
		return
	}
	if answer.OK {
		h.Log.Info("worker can run tasks", "cli", answer.Path, "version", answer.Version)
	} else {
		h.Log.Error("worker cannot run tasks and takes none", "problem", answer.Problem, "remedy", answer.Remedy)
	}
	if h.turned != nil {
		close(h.turned)
		h.turned = nil
	}
	signal(h.news)
}

// redisProblem returns why no task may run with this Redis now; nil if one may, or if Redis does not answer, which is
// no reason of its own: then no task can be taken.
func (h *health) redisProblem(ctx context.Context) *store.Finding {
	found, err := h.Store.Doctor.Diagnose(ctx)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(found, store.Finding.Evicts)
	if i < 0 {
		return nil
	}
	return &found[i]
}

// diskProblem says why no run can use the worker's disks now; nil if one can.
func (h *health) diskProblem(ctx context.Context) *diskProblem {
	last := h.state()
	return h.disks.problem(ctx, last.OK || last.at.IsZero())
}

// state returns the result of the latest check.
func (h *health) state() healthState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// turns returns whether the CLI is usable, and a channel that is closed when that changes.
func (h *health) turns() (ready bool, turned <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.turned == nil {
		h.turned = make(chan struct{})
	}
	return h.last.OK, h.turned
}

// good reports whether a recent check found a usable CLI, and that CLI is still the same file.
func (h *health) good() bool {
	last := h.state()
	return last.OK && time.Since(last.at) < h.Timing.Health*3/2 && !last.replaced()
}

// replaced reports whether the CLI's file is another one than at the check, or was written since.
func (s healthState) replaced() bool {
	if s.cli == nil {
		return false
	}
	now, err := os.Stat(s.Path)
	return err != nil || !os.SameFile(now, s.cli) || !now.ModTime().Equal(s.cli.ModTime()) || now.Size() != s.cli.Size()
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
	if !h.state().OK {
		return unable()
	}
	return nil
}

// unable hands back a task that this worker cannot run, without counting an attempt. No thread is informed: another
// worker takes the task at once, or outage says that there is no such worker.
func unable() *tasks.ErrLater {
	return &tasks.ErrLater{At: time.Now(), Why: "the worker that took it cannot run tasks"}
}

// machineClasses are failures that may be caused by this worker rather than by the task.
var machineClasses = []agent.Class{
	agent.ClassCLIMissing, agent.ClassCLIVersion, agent.ClassAuth, agent.ClassConfig, agent.ClassStart,
}

// blame checks the CLI and the disks again after a run failed, because the last check may be older than what broke
// them. An error hands the task back; nil means that the failure is the task's, as a full disk may be.
func (h *health) blame(ctx context.Context, failure *agent.Error) error {
	if failure == nil {
		return nil
	}
	if !slices.Contains(machineClasses, failure.Class) {
		if bad := h.diskProblem(ctx); bad == nil || bad.full {
			return nil
		}
	}
	if h.check(ctx); !h.state().OK {
		return unable()
	}
	return nil
}

// localWait is how long a task waits for another worker after a failure of one worker's machine, ± 50 %.
const localWait = 20 * time.Second

// blameMachine hands back a task whose preparation failed if the worker's machine is the cause, by a check or by the
// error itself: a part of the disk may be damaged that no check uses. Such an error counts like any other after
// horizon, so that the task does not wait for ever.
func (h *health) blameMachine(ctx context.Context, rec store.Record, err error) error {
	if h.diskProblem(ctx) != nil {
		if h.check(ctx); !h.state().OK {
			return unable()
		}
	}
	if localFault(err) && time.Since(requested(rec)) < horizon {
		h.Log.Error("task hit a fault of this machine and is handed back", "run", rec.ID, "err", err)
		return tasks.Later(around(localWait), "the machine of the worker that took it has a fault")
	}
	return nil
}
