// Package machine says what a worker's machine can take: whether its CLI and disks can be used ([Health]), and for how
// many runs it has room ([Slots]).
package machine

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Config configures a [Health].
type Config struct {
	CLI   CLI
	Store *store.Store
	// Redactor removes secrets from what the CLI says.
	Redactor *agent.Redactor
	// Dirs are the directories that runs need.
	Dirs   []string
	Statfs func(dir string, into *unix.Statfs_t) error
	// Every is the time between two checks; a twelfth of it while the CLI cannot be used.
	Every time.Duration
	Log   *slog.Logger
}

// CLI is what is checked. *agent.Runner implements it.
type CLI interface {
	Health(ctx context.Context) agent.Health
}

// Health is the state of this worker's CLI and disks, and of the settings of Redis. While these cannot be used, the
// worker takes no tasks and checks them more often, so that a fix takes effect soon. It is safe for concurrent use.
type Health struct {
	Config

	disks *disks

	news chan struct{} // holds a token when the worker may have become able or unable to take tasks

	asking sync.Mutex // one check at a time, because a check starts the CLI twice

	mu      sync.Mutex
	last    State
	changed chan struct{} // closed when last changes, and set to nil; nil until Changes is called
}

// State is the result of a check; zero before the first one.
type State struct {
	agent.Health
	At  time.Time   // when the check ended
	cli os.FileInfo // the CLI's file when the check began; nil if unknown
}

// NewHealth returns a health without a check.
func NewHealth(c Config) *Health {
	return &Health{Config: c, disks: newDisks(c.Dirs, c.Statfs), news: make(chan struct{}, 1)}
}

// News has a token when the worker may have become able or unable to take tasks.
func (h *Health) News() <-chan struct{} { return h.news }

// Nudge puts a token into News. It does not block.
func (h *Health) Nudge() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// unableChecks is how many times more often the CLI is checked while it cannot be used.
const unableChecks = 12

// Watch checks the CLI at once and then from time to time, until ctx ends.
func (h *Health) Watch(ctx context.Context) {
	h.Check(ctx)
	for {
		ready, turned := h.Changes()
		wait := h.Every
		if !ready {
			wait /= unableChecks
		}
		select {
		case <-time.After(wait):
			h.Check(ctx)
		case <-turned: // a run has found that
		case <-ctx.Done():
			return
		}
	}
}

// Check checks the CLI now.
func (h *Health) Check(ctx context.Context) {
	begun := time.Now()
	h.asking.Lock()
	defer h.asking.Unlock()
	if h.State().At.After(begun) {
		return // another check ended while this one waited
	}
	cli, _ := os.Stat(h.State().Path) // before the check, so that a change during it counts
	answer := h.CLI.Health(ctx)
	if cli == nil || answer.Path != h.State().Path {
		cli, _ = os.Stat(answer.Path)
	}
	if bad := h.diskProblem(ctx); answer.OK && bad != nil {
		answer.OK, answer.Problem, answer.Sentence, answer.Remedy = false, bad.problem, bad.sentence, bad.remedy
	}
	if bad := h.redisProblem(ctx); answer.OK && bad != nil {
		answer.OK, answer.Problem, answer.Remedy = false, "Redis: "+bad.What, bad.Remedy
		answer.Sentence = "The settings of Redis would lose tasks. An operator must correct them."
	}
	answer.Problem = h.Redactor.String(answer.Problem) // it may quote what the CLI says
	if ctx.Err() != nil {
		return // the check was interrupted and says nothing about the CLI
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	h.last = State{answer, time.Now(), cli}
	if !before.At.IsZero() && before.OK == answer.OK && before.Problem == answer.Problem {
		return
	}
	if answer.OK {
		h.Log.Info("worker can run tasks", "cli", answer.Path, "version", answer.Version)
		if why := answer.Untested(); why != "" {
			h.Log.Warn("untested version of the CLI", "why", why)
		}
	} else {
		h.Log.Error("worker cannot run tasks and takes none", "problem", answer.Problem, "remedy", answer.Remedy)
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
	h.Nudge()
}

// redisProblem returns why no task may run with this Redis now; nil if one may, or if Redis does not answer, which is
// no reason of its own: then no task can be taken.
func (h *Health) redisProblem(ctx context.Context) *store.Finding {
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
func (h *Health) diskProblem(ctx context.Context) *diskProblem {
	last := h.State()
	return h.disks.problem(ctx, last.OK || last.At.IsZero())
}

// State returns the result of the latest check.
func (h *Health) State() State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Changes returns whether the CLI is usable, and a channel that is closed when that changes.
func (h *Health) Changes() (ready bool, turned <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.last.OK, h.changed
}

// Good reports whether a recent check found a usable CLI, and that CLI is still the same file.
func (h *Health) Good() bool {
	last := h.State()
	return last.OK && time.Since(last.At) < h.Every*3/2 && !last.replaced()
}

// replaced reports whether the CLI's file is another one than at the check, or was written since.
func (s State) replaced() bool {
	if s.cli == nil {
		return false
	}
	now, err := os.Stat(s.Path)
	return err != nil || !os.SameFile(now, s.cli) || !now.ModTime().Equal(s.cli.ModTime()) || now.Size() != s.cli.Size()
}

// Problem returns nil if a run can start here. Otherwise it returns an error with which the task waits for another
// worker.
func (h *Health) Problem(ctx context.Context) error {
	if !h.Good() {
		h.Check(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if !h.State().OK {
		return Unable()
	}
	return nil
}

// Unable hands back a task that this worker cannot run, without counting an attempt. No thread is informed: another
// worker takes the task at once, or the leader says that there is no such worker.
func Unable() *tasks.ErrLater {
	return &tasks.ErrLater{At: time.Now(), Why: "the worker that took it cannot run tasks"}
}

// machineClasses are failures that may be caused by this worker rather than by the task.
var machineClasses = []agent.Class{
	agent.ClassCLIMissing, agent.ClassCLIVersion, agent.ClassAuth, agent.ClassConfig, agent.ClassStart,
}

// Blame checks the CLI and the disks again after a run failed, because the last check may be older than what broke
// them. An error hands the task back; nil means that the failure is the task's, as a full disk may be.
func (h *Health) Blame(ctx context.Context, failure *agent.Error) error {
	if failure == nil {
		return nil
	}
	if !slices.Contains(machineClasses, failure.Class) {
		if bad := h.diskProblem(ctx); bad == nil || bad.full {
			return nil
		}
	}
	if h.Check(ctx); !h.State().OK {
		return Unable()
	}
	return nil
}

// BlameDisks checks the CLI and the disks again after the preparation of a task failed, if a disk has a problem now. An
// error hands the task back.
func (h *Health) BlameDisks(ctx context.Context) error {
	if h.diskProblem(ctx) == nil {
		return nil
	}
	if h.Check(ctx); !h.State().OK {
		return Unable()
	}
	return nil
}
