// Package worker is the process that runs tasks. A [Worker] takes deliveries from the queues, whose tasks package
// attempt runs to their endings, and has the loops beside them: heartbeat, health, final messages, the leader's repairs
// and the cleanup of the disk.
//
// The package promises:
//   - A final message that could not be posted is posted later by some worker, and a task whose worker died is run
//     again by another one, or ended after its third crash.
//   - A worker whose CLI cannot run tasks takes none, and reports that in its log, its health and its heartbeat.
//   - A drain interrupts the runs and hands them back to the fleet within Timing.Shutdown.
//
// Call [New] once per process and [Worker.Run] once per worker; Run blocks until its context ends and the worker has
// shut down. [Worker.Health] and [Worker.Examine] are safe for concurrent use. Each loop that Run starts has its own
// goroutine. A [Meter] is called from all of them.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
	"github.com/errand-fleet/errand/tasks/worker/outbox"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/tasks/worker/recovery"
	"github.com/errand-fleet/errand/tasks/worker/sources"
	"github.com/errand-fleet/errand/workspace"
)

// Runner runs the agent. *agent.Runner implements it.
type Runner interface {
	attempt.Runner
	attempt.KnownCredentials
	machine.CLI
	Sweep(ctx context.Context) error
	Offer(ctx context.Context, s agent.Spec) (agent.Offer, error)
}

// Meter receives what a worker does with tasks, for its metrics. Its methods are called from many goroutines and must
// not block.
type Meter interface {
	attempt.Meter
	outbox.Meter
}

// unmetered is the meter of a worker without metrics.
type unmetered struct{}

func (unmetered) Began(tasks.Task, time.Duration)               {}
func (unmetered) Ran(tasks.Task, agent.Result)                  {}
func (unmetered) Returned(string, attempt.Return)               {}
func (unmetered) Ended(tasks.Task, tasks.Ending, time.Duration) {}

// Config configures a Worker. Everything up to ConsoleURL is required except Publisher and Commands.
type Config struct {
	Store     *store.Store
	Queue     *queue.Queue
	Runner    Runner
	Workspace *workspace.Workspace
	Sources   []tasks.Source
	Policy    rights.Policy
	Publisher tasks.Publisher // nil: nothing is published
	// Commands returns the verification commands of a repository, which should succeed before work on a branch is
	// published. nil: none.
	Commands func(ctx context.Context, repo string) ([]string, error)
	Secrets  func(repo string) map[string]string // more variables for the set-up of a repository; nil for none
	Mise     bool                                // the machine has mise, which installs versions of tools
	// Ended notes that a task has ended, after its final message was posted; it is called again if it fails. nil:
	// nothing.
	Ended      func(ctx context.Context, t tasks.Task, at time.Time) error
	Exposed    func(repo string) map[string]string // those of Secrets that runs and checks get too; nil for none
	ConsoleURL string                              // base URL of the console, without a trailing slash; may be empty

	// directories that runs need; a worker that cannot write there, or without room there, takes no tasks
	Disks  []string
	Statfs func(dir string, into *unix.Statfs_t) error // nil: the system call

	Pool       string          // whose tasks it takes; the default one if ""
	Slots      int             // concurrent runs; at least 2, so that a person never waits only for automatic work
	Once       bool            // it takes one task and returns from Run when that has ended or waits for others
	Wait       time.Duration   // with Once: Run returns if no task comes for this long; 0: no limit
	Memory     func() int64    // returns the bytes available for further runs; if nil, only Slots limits them
	Author     string          // name and address of errand in commits; those of its account at the forge if ""
	IdleLimit  time.Duration   // stops a run that shows no sign of work for this long; 0 for no limit
	Version    string          // of errand
	Credential string          // identifies the model credential of the runs without revealing it; "" if unknown
	LogDir     string          // directory where Runner writes the logs; if "", logs are neither stored nor removed
	Notices    []store.Finding // findings about the configuration, for operators
	Digest     string          // of errand.yaml and the shared settings
	Limits     []string        // of a run, in words
	URL        string          // where front doors on other machines can fetch logs, or ""
	Retention  Retention       // for data on this disk; zero keeps everything
	Meter      Meter           // nil: no metrics
	Log        *slog.Logger    // nil: discard

	Timing Timing // zero: the defaults
}

// total returns how many runs the worker may have at once.
func (c Config) total() int {
	if c.Once {
		return 1
	}
	return max(c.Slots, 2)
}

// Timing holds the intervals and time limits of a worker. Tests shorten them.
type Timing struct {
	attempt.Timing

	// how long a claim must be missing before its run counts as dead, or all workers unable before threads are
	// informed; 6 s
	Observe   time.Duration
	Reconcile time.Duration // between two reconciliations of live tasks; 2 s
	Lead      time.Duration // after this long without a sign of life a leader is replaced; less than Observe; 5 s
	Outbox    time.Duration // between two checks of the outbox; 2 s
	Beat      time.Duration // between two heartbeats; 5 s
	Health    time.Duration // between two checks of the CLI; a twelfth of it while the CLI cannot be used; 1 min
	Shutdown  time.Duration // for running tasks to be interrupted and handed back; 60 s
	Discard   time.Duration // for the users of an old thread's directories to leave them; 30 s
	Tidy      time.Duration // between two cleanups of the disk; 1 h
	Unable    time.Duration // after this long without being able to run tasks, Run returns with Config.Once; 5 min
}

func (t Timing) withDefaults() Timing {
	t.Timing = t.WithDefaults()
	t.Observe = cmp.Or(t.Observe, 6*time.Second)
	t.Reconcile = cmp.Or(t.Reconcile, 2*time.Second)
	t.Lead = cmp.Or(t.Lead, 5*time.Second)
	t.Outbox = cmp.Or(t.Outbox, 2*time.Second)
	t.Beat = cmp.Or(t.Beat, 5*time.Second)
	t.Health = cmp.Or(t.Health, time.Minute)
	t.Shutdown = cmp.Or(t.Shutdown, time.Minute)
	t.Discard = cmp.Or(t.Discard, 30*time.Second)
	t.Tidy = cmp.Or(t.Tidy, time.Hour)
	t.Unable = cmp.Or(t.Unable, 5*time.Minute)
	return t
}

// Worker takes tasks from the queues and runs them. Call Run once; Health and Examine are safe for concurrent use.
type Worker struct {
	cfg     Config
	id      string
	started time.Time
	epoch   string          // identifies Redis' data; last value that watchData saw
	drained context.Context // ends when the worker interrupts its runs
	drain   context.CancelFunc
	peers   atomic.Int64 // workers of its pool that take tasks, with this one; 0 if unknown
	taking  atomic.Bool  // it takes tasks

	cordonState atomic.Int32 // from the last heartbeat that Redis took
	cordoned    atomic.Bool  // it takes no tasks because it is cordoned

	once    *once
	handled sync.WaitGroup // counts the deliveries that are being processed

	slots    *machine.Slots
	health   *machine.Health
	sources  *sources.Set
	attempts *attempt.Processor

	// Work beside the attempts.
	outbox      *outbox.Poster
	recovery    *recovery.Recovery
	waits       *notices.Notifier
	janitor     *janitor
	offers      *offerer
	credentials *attempt.Credentials
}

// New returns a worker with a new identity.
func New(c Config) (*Worker, error) {
	if c.Store == nil || c.Queue == nil || c.Runner == nil || c.Workspace == nil || len(c.Sources) == 0 {
		return nil, errors.New("create worker: store, queue, runner, workspace and sources are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = unmetered{}
	}
	if c.Statfs == nil {
		c.Statfs = unix.Statfs
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("create worker: %w", err)
	}
	c.Timing = c.Timing.withDefaults()
	w := &Worker{
		cfg: c, id: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8]), started: time.Now(),
		once:  newOnce(),
		slots: machine.NewSlots(c.total(), machine.Memory{Available: c.Memory}, c.Log),
	}
	w.drained, w.drain = context.WithCancel(context.Background())
	w.build()
	return w, nil
}

// build creates the parts of a worker.
func (w *Worker) build() {
	c := w.cfg
	log := c.Log.With("worker", w.id) // where nothing else in the log lines names the machine
	w.health = machine.NewHealth(machine.Config{
		CLI: c.Runner, Store: c.Store, Redactor: c.Policy.Redactor, Dirs: c.Disks, Statfs: c.Statfs,
		Every: c.Timing.Health, Log: c.Log,
	})
	w.sources = &sources.Set{All: c.Sources}
	w.waits = notices.New(c.Store, w.sources, c.Log)
	w.credentials = &attempt.Credentials{
		Known: c.Runner, Store: c.Store, Own: c.Credential, Log: c.Log,
	}
	declarations := &place.Declarations{
		Workspace: c.Workspace, Store: c.Store, Egress: c.Policy.Egress, Mise: c.Mise,
	}
	publisher := &publish.Publisher{
		Store: c.Store, Workspace: c.Workspace, Scripts: c.Runner, Policy: c.Policy, Forge: c.Publisher,
		Commands: c.Commands, Author: c.Author, ConsoleURL: c.ConsoleURL, Log: c.Log,
	}
	w.outbox = outbox.New(outbox.Config{
		Store: c.Store, Sources: w.sources, PullRequests: publisher, Ended: c.Ended, Meter: c.Meter, Log: c.Log,
	})
	w.attempts = attempt.New(attempt.Config{
		Worker: w.id, Store: c.Store, Queue: c.Queue, Runner: c.Runner, Workspace: c.Workspace, Sources: w.sources,
		Policy: c.Policy, Pool: c.Pool, Slots: w.slots, Health: w.health, Credentials: w.credentials,
		Declarations: declarations, Publisher: publisher, Notices: w.waits, Outbox: w.outbox,
		Secrets: c.Secrets, Exposed: c.Exposed, Caps: c.Policy.Limits.Caps(), Credential: c.Credential,
		IdleLimit: c.IdleLimit, LogDir: c.LogDir, Drained: w.drained, Meter: c.Meter, Log: c.Log,
		Timing: c.Timing.Timing, Claimed: w.claimed,
	})
	w.recovery = &recovery.Recovery{
		Store: c.Store, Queue: c.Queue, Policy: c.Policy, Notices: w.waits,
		Leader: c.Store.Leader("recovery", c.Timing.Lead), Observe: c.Timing.Observe,
		Every: c.Timing.Reconcile, Crashed: func(class string) { c.Meter.Returned(class, attempt.ReturnCrash) },
		Log: log,
	}
	w.janitor = &janitor{
		store: c.Store, workspace: c.Workspace, logDir: c.LogDir, retention: c.Retention,
		discardFor: c.Timing.Discard, log: log,
	}
	w.offers = &offerer{
		store: c.Store, workspace: c.Workspace, runner: c.Runner, policy: c.Policy, sources: c.Sources, pool: c.Pool,
		secrets: c.Secrets, exposed: c.Exposed, limits: c.Limits, health: w.health,
		declarations: declarations, publisher: publisher, log: log,
	}
}

// Run takes tasks until ctx ends, or one task with Config.Once, and then shuts down within Timing.Shutdown: it takes no
// new tasks, interrupts the running ones, hands them back to the fleet and returns. It returns an error if the worker
// could not start, and with Config.Once if the task was given back or none could run.
func (w *Worker) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	swept := w.cfg.Runner.Sweep(ctx) // the claims of leftover runs have expired or will
	logline.Warn(w.cfg.Log, swept, "sweep", "worker", w.id)
	// The loops continue during the drain: endings are still posted, and the fleet still sees the worker.
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, l := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{w.cfg.Timing.Beat, w.beat},
		{w.cfg.Timing.Beat, w.watchData},
		{w.cfg.Timing.Beat, w.credentials.Share},
		{w.cfg.Timing.Outbox, w.outbox.PostDue},
		{w.cfg.Timing.Outbox, w.waits.PostLater},
		{w.cfg.Timing.Reconcile, w.recovery.Reconcile},
		{min(recovery.DeliverEvery, w.cfg.Timing.Reconcile), w.recovery.Deliver},
		{w.cfg.Timing.Tidy, w.janitor.tidy},
		{outdatedEvery, w.janitor.tidyOutdated},
	} {
		running.Go(func() { every(loops, l.every, l.do) })
	}
	running.Go(func() { w.health.Watch(loops) })
	if !w.cfg.Once { // an answer may clone any repository, which the one task could read
		running.Go(func() { w.offers.answer(ctx) })
		running.Go(func() { every(ctx, slowEvery, w.cfg.Workspace.FetchSlow) })
	}
	w.cfg.Log.Info("worker started", "worker", w.id, "pool", tasks.PoolName(w.cfg.Pool), "slots", w.slots.Total(),
		"sources", w.sources.Names())
	err := w.takeTasks(ctx)
	if err == nil { // its one task may have been left badly while the worker was being stopped
		select {
		case err = <-w.once.over:
		default:
		}
	}
	cancel() // a worker that takes one task ends before its context
	stop()
	running.Wait()
	w.recovery.Resign(context.WithoutCancel(ctx))
	w.outbox.Wait()
	w.waits.Wait()
	w.cfg.Log.Info("worker stopped", "worker", w.id)
	return err
}

// Health returns the latest state of this worker's CLI, and false if the CLI has not been checked yet. It is safe for
// concurrent use.
func (w *Worker) Health() (agent.Health, bool) {
	last := w.health.State()
	return last.Health, !last.At.IsZero()
}

// Examine checks the CLI now, or waits for a check that is running. It is safe for concurrent use.
func (w *Worker) Examine(ctx context.Context) agent.Health {
	w.health.Check(ctx)
	return w.health.State().Health
}

// slowEvery is the pause between attempts to fetch what was too slow for a run.
const slowEvery = time.Minute

// every calls do at once and then once per d, until ctx ends.
func every(ctx context.Context, d time.Duration, do func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		do(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
