package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
	"github.com/errand-fleet/errand/tasks/worker/outbox"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/pools"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/tasks/worker/recovery"
	"github.com/errand-fleet/errand/tasks/worker/sources"
	"github.com/errand-fleet/errand/workspace"
)

// Runner runs the agent. *agent.Runner implements it.
type Runner interface {
	Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	Script(ctx context.Context, s agent.Script) (agent.Scripted, error)
	Health(ctx context.Context) agent.Health
	Sweep(ctx context.Context) error
	Offer(ctx context.Context, s agent.Spec) (agent.Offer, error)
	Sandboxed() bool
	Credentials() map[string]agent.CredentialState
	Learn(known map[string]agent.CredentialState)
}

// Config configures a Worker. Everything up to ConsoleURL is required except Publisher and Commands.
type Config struct {
	Store     *store.Store
	Queue     *tasks.Queue
	Runner    Runner
	Workspace *workspace.Workspace
	Sources   []tasks.Source
	Policy    tasks.Policy
	Publisher tasks.Publisher // nil: nothing is published
	// Commands returns the verification commands of a repository, which should succeed before work on a branch is
	// published. nil: none.
	Commands func(ctx context.Context, repo, base string) ([]string, error)
	Secrets  func(repo string) map[string]string // more variables for the set-up of a repository; nil for none
	Mise     bool                                // the machine has mise, which installs versions of tools
	// Ended notes that a task has ended, after its final message was posted; it is called again if it fails. nil:
	// nothing.
	Ended      func(ctx context.Context, t tasks.Task, kind tasks.EndingKind, at time.Time) error
	Exposed    func(repo string) map[string]string // those of Secrets that runs and checks get too; nil for none
	ConsoleURL string                              // base URL of the console, without a trailing slash; may be empty

	// directories that runs need; a worker that cannot write there, or without room there, takes no tasks
	Disks  []string
	Statfs func(dir string, into *unix.Statfs_t) error // nil: the system call

	Pool       string            // whose tasks it takes; the default one if ""
	Slots      int               // concurrent runs; at least 2, so that a person never waits only for automatic work
	Memory     func() int64      // returns the bytes available for further runs; if nil, only Slots limits them
	RunMemory  int64             // bytes a run needs; 350 MiB if 0
	Author     string            // name and address of errand in commits; those of its account at the forge if ""
	IdleLimit  time.Duration     // stops a run that shows no sign of work for this long; 0 for no limit
	Model      string            // for tasks that name none; the CLI's default if ""
	Version    string            // of errand
	Credential string            // identifies the model credential of the runs without revealing it; "" if unknown
	LogDir     string            // directory where Runner writes the logs; if "", logs are neither stored nor removed
	Notices    []store.Finding   // findings about the configuration, for operators
	Settings   map[string]string // the configuration as far as it is published, without secrets
	URL        string            // where front doors on other machines can fetch logs, or ""
	Retention  Retention         // for data on this disk; zero keeps everything
	Meter      Meter             // nil: no metrics
	Log        *slog.Logger      // nil: discard

	Timing Timing // zero: the defaults
}

// warn logs a failure that does not stop anything. It does nothing if err is nil.
func (c *Config) warn(err error, msg string, args ...any) {
	if err != nil {
		c.Log.Warn(msg, append(args, "err", err)...) //nolint:sloglint // each caller passes a constant
	}
}

// Timing holds the intervals and time limits of a worker. Tests shorten them.
type Timing struct {
	// how long a claim must be missing before its run counts as dead, or all workers unable before threads are
	// informed; 6 s
	Observe    time.Duration
	Reconcile  time.Duration // between two reconciliations of live tasks; 2 s
	Lead       time.Duration // after this long without a sign of life a leader is replaced; less than Observe; 5 s
	Outbox     time.Duration // between two checks of the outbox; 2 s
	Beat       time.Duration // between two heartbeats; 5 s
	Health     time.Duration // between two checks of the CLI; a twelfth of it while the CLI cannot be used; 1 min
	Answer     time.Duration // how long an agent waits for a person's answer; 15 min
	Checkpoint time.Duration // between two checkpoints of a run; 5 min
	Pack       time.Duration // at most, to pack an interrupted run's clone at a shutdown; 10 s
	Again      time.Duration // before a failed run is retried, ± 50 %; doubles each time; 30 s
	Reset      time.Duration // after a usage limit is lifted, before its task resumes; up to three times as long; 1 min
	Release    time.Duration // between two starts after a usage limit, until a run succeeds; 10 s
	Budget     time.Duration // how long a task waits for budget that others have reserved and may release; 15 s
	// how long a task whose worker died waits for the other runs on its worker to end, before it runs there without
	// them; 2 min
	Alone    time.Duration
	Shutdown time.Duration // for running tasks to be interrupted and handed back; 60 s
	Discard  time.Duration // for the users of an old thread's directories to leave them; 30 s
	Tidy     time.Duration // between two cleanups of the disk; 1 h
}

func (t Timing) withDefaults() Timing {
	t.Observe = cmp.Or(t.Observe, 6*time.Second)
	t.Reconcile = cmp.Or(t.Reconcile, 2*time.Second)
	t.Lead = cmp.Or(t.Lead, 5*time.Second)
	t.Outbox = cmp.Or(t.Outbox, 2*time.Second)
	t.Beat = cmp.Or(t.Beat, 5*time.Second)
	t.Health = cmp.Or(t.Health, time.Minute)
	t.Answer = cmp.Or(t.Answer, 15*time.Minute)
	t.Checkpoint = cmp.Or(t.Checkpoint, 5*time.Minute)
	t.Pack = cmp.Or(t.Pack, 10*time.Second)
	t.Again = cmp.Or(t.Again, 30*time.Second)
	t.Reset = cmp.Or(t.Reset, time.Minute)
	t.Release = cmp.Or(t.Release, 10*time.Second)
	t.Budget = cmp.Or(t.Budget, 15*time.Second)
	t.Alone = cmp.Or(t.Alone, 2*time.Minute)
	t.Shutdown = cmp.Or(t.Shutdown, time.Minute)
	t.Discard = cmp.Or(t.Discard, 30*time.Second)
	t.Tidy = cmp.Or(t.Tidy, time.Hour)
	return t
}

// Worker takes tasks from the queues and runs them. Call Run once; Health and Examine are safe for concurrent use.
type Worker struct {
	cfg     Config
	id      string
	desk    *tasks.Desk
	started time.Time
	epoch   string          // identifies Redis' data; last value that watchData saw
	drained context.Context // ends when the worker interrupts its runs
	drain   context.CancelFunc
	peers   atomic.Int64 // workers of its pool that take tasks, with this one; 0 if unknown
	taking  atomic.Bool  // it takes tasks

	cordonState atomic.Int32 // from the last heartbeat that Redis took
	cordoned    atomic.Bool  // it takes no tasks because it is cordoned

	setUps failedSetUps

	handled sync.WaitGroup // counts the deliveries that are being processed

	slots  *machine.Slots
	caps   []store.Cap // of its claims
	health *machine.Health
	tasks  *sources.Set
	briefs *briefer

	// Steps of a run.
	admission    *admission
	isolation    *isolation
	checkpoints  *checkpointer
	changes      *changeKeeper
	placer       *placer
	publisher    *publish.Publisher
	declarations *place.Declarations

	// Work beside the runs.
	outbox    *outbox.Poster
	recovery  *recovery.Recovery
	waits     *notices.Notifier
	pools     *pools.Mover
	outage    *recovery.Outage
	janitor   *janitor
	offers    *offerer
	inventory *inventory

	credentials *credentialSharer
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
		desk:  tasks.NewDesk(c.Store, c.Queue, c.Policy, c.Log),
		slots: machine.NewSlots(c.Slots, machine.Memory{Available: c.Memory, Run: c.RunMemory}, c.Log),
	}
	w.drained, w.drain = context.WithCancel(context.Background())
	w.caps = c.Policy.Limits.Caps(c.Credential)
	w.build()
	return w, nil
}

// build creates the parts of a worker.
func (w *Worker) build() {
	c, shared := w.cfg, &w.cfg
	named := w.cfg // nothing else in the log lines of these names the machine
	named.Log = named.Log.With("worker", w.id)
	w.health = machine.NewHealth(machine.Config{
		CLI: c.Runner, Store: c.Store, Redactor: c.Policy.Redactor, Dirs: c.Disks, Statfs: c.Statfs,
		Every: c.Timing.Health, Log: c.Log,
	})
	w.tasks = &sources.Set{All: c.Sources, Store: c.Store, Log: c.Log}
	w.briefs = &briefer{shared}
	w.waits = notices.New(c.Store, w.tasks, c.Log)
	w.pools = &pools.Mover{Queue: c.Queue, Policy: c.Policy, Log: c.Log}
	w.credentials = &credentialSharer{Config: shared, worker: w.id}
	w.admission = &admission{shared, w.credentials}
	w.isolation = &isolation{Config: shared, health: w.health}
	w.changes = &changeKeeper{shared}
	w.checkpoints = &checkpointer{shared, w.changes}
	w.declarations = &place.Declarations{
		Workspace: c.Workspace, Store: c.Store, Egress: c.Policy.Egress, Mise: c.Mise,
	}
	w.publisher = publish.New(publish.Config{
		Store: c.Store, Workspace: c.Workspace, Scripts: c.Runner, Policy: c.Policy, Forge: c.Publisher,
		Commands: c.Commands, Author: c.Author, ConsoleURL: c.ConsoleURL, Log: c.Log,
	})
	w.placer = &placer{Config: shared, checkpoints: w.checkpoints, publisher: w.publisher, declarations: w.declarations}
	w.outbox = outbox.New(outbox.Config{
		Store: c.Store, Sources: w.tasks, PullRequests: w.publisher, Ended: c.Ended, Meter: c.Meter, Log: c.Log,
	})
	w.recovery = recovery.New(recovery.Config{
		Store: c.Store, Queue: c.Queue, Policy: c.Policy, Credential: c.Credential, Sources: w.tasks, Notices: w.waits,
		Pools: w.pools, Leader: c.Store.Leader("recovery", c.Timing.Lead), Observe: c.Timing.Observe,
		Every: c.Timing.Reconcile, Crashed: func(class string) { c.Meter.Returned(class, ReturnCrash) }, Log: named.Log,
	})
	w.outage = recovery.NewOutage(recovery.OutageConfig{
		Store: c.Store, Policy: c.Policy, Pool: c.Pool, Health: w.health, Notices: w.waits,
		Leader: c.Store.Leader("outage", 3*c.Timing.Observe), Observe: c.Timing.Observe,
	})
	w.janitor = &janitor{Config: &named}
	w.offers = &offerer{
		Config: &named, health: w.health, declarations: w.declarations, publisher: w.publisher,
	}
	w.inventory = &inventory{Config: &named}
}

// Run takes tasks until ctx ends and then shuts down within Timing.Shutdown: it takes no new tasks, interrupts the
// running ones, hands them back to the fleet and returns. It returns an error if the worker could not start.
func (w *Worker) Run(ctx context.Context) error {
	w.cfg.warn(w.cfg.Runner.Sweep(ctx), "sweep", "worker", w.id) // the claims of leftover runs have expired or will
	// The loops continue during the drain: endings are still posted, and the fleet still sees the worker.
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, l := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{w.cfg.Timing.Beat, w.beat},
		{w.cfg.Timing.Beat, w.watchData},
		{w.cfg.Timing.Beat, w.credentials.share},
		{w.cfg.Timing.Outbox, w.outbox.PostDue},
		{w.cfg.Timing.Outbox, w.waits.PostLater},
		{w.cfg.Timing.Reconcile, w.recovery.Reconcile},
		{min(recovery.DeliverEvery, w.cfg.Timing.Reconcile), w.recovery.Deliver},
		{w.cfg.Timing.Observe, w.outage.Inform},
		{w.cfg.Timing.Tidy, w.janitor.tidy},
		{inventoryKept, w.janitor.tidyOutdated},
	} {
		running.Go(func() { every(loops, l.every, l.do) })
	}
	running.Go(func() { w.health.Watch(loops) })
	running.Go(func() { w.offers.answer(ctx) })
	w.cfg.Log.Info("worker started", "worker", w.id, "pool", tasks.PoolName(w.cfg.Pool), "slots", w.slots.Total,
		"sources", w.tasks.Names())
	err := w.takeTasks(ctx)
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

// beat writes this worker's heartbeat.
func (w *Worker) beat(ctx context.Context) {
	if w.health.State().At.IsZero() {
		w.health.Check(ctx) // do not announce a worker whose CLI is unchecked
	}
	host, _ := os.Hostname() // it succeeded in New
	pulse, err := w.cfg.Store.Workers.Beat(ctx, store.Worker{
		ID: w.id, Host: host, Version: w.cfg.Version, Pool: w.cfg.Pool, Pid: os.Getpid(), Slots: w.slots.Total,
		Running: w.slots.Running(), Started: w.started, Draining: w.drained.Err() != nil, Cordoned: w.cordoned.Load(),
		Taking: w.taking.Load(),
		Health: format.JSON(w.health.State().Health), Notices: w.notices(), Settings: w.cfg.Settings, URL: w.cfg.URL,
		Sources: w.tasks.Names(), Memory: w.slots.Memory.Known(), Credential: w.cfg.Credential,
		Environments: w.inventory.environments(),
	})
	if taking := int64(pulse.Taking); w.peers.Swap(taking) != taking {
		w.health.Nudge()
	}
	told := admitted
	if pulse.Cordoned {
		told = cordoned
	}
	switch {
	case err == nil && cordonState(w.cordonState.Swap(int32(told))) != told:
		w.health.Nudge()
	case err != nil && ctx.Err() == nil:
		w.cfg.Log.Warn("beat", "worker", w.id, "err", err)
	}
}

// notices returns what operators should know about this worker: about its configuration, and whether the object store
// answers.
func (w *Worker) notices() []store.Finding {
	if w.cfg.Store.Doctor.Objects() == nil {
		return w.cfg.Notices
	}
	return append(slices.Clone(w.cfg.Notices), store.Finding{
		Severity: store.Warning, What: "The object store does not answer",
		Why:    "Large checkpoints and logs are not saved meanwhile. It is asked again every half minute.",
		Remedy: "Check ERRAND_OBJECTS and the worker's log.",
	})
}

// watchData detects that Redis has lost its data. Only one goroutine calls it. Live runs restore their own records.
func (w *Worker) watchData(ctx context.Context) {
	epoch, lost, err := w.cfg.Store.Doctor.Epoch(ctx, w.epoch)
	if err != nil {
		return // beat logs the error
	}
	known := w.epoch
	w.epoch = epoch
	if known == "" || epoch == known {
		return
	}
	w.cfg.Log.Error("redis lost its data: tasks that waited are gone", "noticed", lost)
}
