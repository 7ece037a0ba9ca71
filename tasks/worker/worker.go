package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/workspace"
	"github.com/google/uuid"
)

// Runner runs the agent. *agent.Runner implements it.
type Runner interface {
	Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	Script(ctx context.Context, s agent.Script) (agent.Scripted, error)
	Health(ctx context.Context, minVersion string) agent.Health
	Sweep(ctx context.Context) error
	Offer(ctx context.Context, s agent.Spec) (agent.Offer, error)
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
	Commands   func(ctx context.Context, repo, base string) ([]string, error)
	ConsoleURL string // base URL of the console, without a trailing slash; may be empty

	Slots      int             // concurrent runs; at least 2, so that a person never waits only for automatic work
	Memory     func() int64    // returns the bytes available for further runs; nil: only Slots limits them
	RunMemory  int64           // bytes a run needs; 0: 350 MiB
	IdleLimit  time.Duration   // stops a run that shows no sign of work for this long; 0: no limit
	Model      string          // for tasks that name none; empty: the CLI's default
	MinVersion string          // of the CLI; empty: agent.MinCLI
	Version    string          // of errand
	Credential string          // identifies the model credential of the runs without revealing it; empty: unknown
	LogDir     string          // directory where Runner writes the logs; empty: logs are neither stored nor removed
	Notices    []store.Finding // findings about the configuration, for operators
	URL        string          // where front doors on other machines can fetch logs; empty: nowhere
	Retention  Retention       // for data on this disk; zero: everything is kept
	Meter      Meter           // nil: no metrics
	Log        *slog.Logger    // nil: discard

	Timing Timing // zero: the defaults
}

// Timing holds the intervals and time limits of a worker. Tests shorten them.
type Timing struct {
	Observe    time.Duration // how long a claim must be missing before its run counts as dead, or all workers unable before threads are informed; 6 s
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
	Alone      time.Duration // how long a task whose worker died waits for the other runs on its worker to end, before it runs there without them; 2 min
	Shutdown   time.Duration // for running tasks to be interrupted and handed back; 60 s
	Discard    time.Duration // for the users of an old thread's directories to leave them; 30 s
	Tidy       time.Duration // between two cleanups of the disk; 1 h
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&t.Observe, 6*time.Second)
	set(&t.Reconcile, 2*time.Second)
	set(&t.Lead, 5*time.Second)
	set(&t.Outbox, 2*time.Second)
	set(&t.Beat, 5*time.Second)
	set(&t.Health, time.Minute)
	set(&t.Answer, 15*time.Minute)
	set(&t.Checkpoint, 5*time.Minute)
	set(&t.Pack, 10*time.Second)
	set(&t.Again, 30*time.Second)
	set(&t.Reset, time.Minute)
	set(&t.Release, 10*time.Second)
	set(&t.Budget, 15*time.Second)
	set(&t.Alone, 2*time.Minute)
	set(&t.Shutdown, time.Minute)
	set(&t.Discard, 30*time.Second)
	set(&t.Tidy, time.Hour)
	return t
}

// Worker takes tasks from the queues and runs them. Call Run once; Health and Examine are safe for concurrent use.
type Worker struct {
	cfg       Config
	id        string
	store     *store.Store
	queue     *tasks.Queue
	desk      *tasks.Desk
	runner    Runner
	workspace *workspace.Workspace
	slots     *slots
	live      liveRuns
	health    health
	recovery  recovery
	unable    unableTold
	epoch     string // identifies Redis' data; last value that watchData saw
	timing    Timing
	meter     Meter
	log       *slog.Logger
	started   time.Time

	posters chan struct{}  // holds a token for each final message that is being posted
	posting sync.WaitGroup // counts them, and the messages about waiting tasks; Run waits for it

	tellings tellings
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
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("create worker: %w", err)
	}
	w := &Worker{
		cfg: c, id: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8]),
		store: c.Store, queue: c.Queue, desk: tasks.NewDesk(c.Store, c.Queue, c.Policy, c.Log), runner: c.Runner, workspace: c.Workspace,
		slots:  newSlots(c.Slots, memory{available: c.Memory, run: c.RunMemory}, c.Log),
		timing: c.Timing.withDefaults(), meter: c.Meter, log: c.Log, started: time.Now(),
		posters: make(chan struct{}, posters), tellings: newTellings(),
	}
	w.health = health{runner: c.Runner, min: c.MinVersion, fresh: w.timing.Health * 3 / 2, log: c.Log, news: make(chan struct{}, 1)}
	w.recovery = recovery{leader: c.Store.Leader("recovery", w.timing.Lead)}
	w.unable = unableTold{leader: c.Store.Leader("unable", 2*w.timing.Observe)} // informUnable runs once per Observe
	return w, nil
}

// Run takes tasks until ctx ends and then shuts down within Timing.Shutdown: it takes no new tasks, interrupts the
// running ones, hands them back to the fleet and returns. It returns an error if the worker could not start.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.runner.Sweep(ctx); err != nil {
		w.log.Warn("sweep", "worker", w.id, "err", err) // the claims of leftover runs have expired or will
	}
	// The loops continue during the drain: endings are still posted, and the fleet still sees the worker.
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, l := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{w.timing.Beat, w.beat},
		{w.timing.Beat, w.watchData},
		{w.timing.Outbox, w.postDue},
		{w.timing.Outbox, w.tellLater},
		{w.timing.Reconcile, w.reconcile},
		{w.timing.Observe, w.informUnable},
		{w.timing.Tidy, w.tidy},
	} {
		running.Go(func() { every(loops, l.every, l.do) })
	}
	running.Go(func() { w.health.watch(loops, w.timing.Health) })
	running.Go(func() { w.forwardAsynqCancels(loops) })
	running.Go(func() { w.answerOffers(ctx) })
	w.log.Info("worker started", "worker", w.id, "slots", w.slots.total)
	err := w.takeTasks(ctx)
	stop()
	running.Wait()
	w.resign(context.WithoutCancel(ctx))
	w.posting.Wait()
	w.log.Info("worker stopped", "worker", w.id)
	return err
}

// Health returns the latest state of this worker's CLI, and false if the CLI has not been checked yet. It is safe for
// concurrent use.
func (w *Worker) Health() (agent.Health, bool) { return w.health.known(), w.health.since(time.Time{}) }

// Examine checks the CLI now, or waits for a check that is running. It is safe for concurrent use.
func (w *Worker) Examine(ctx context.Context) agent.Health {
	w.health.check(ctx)
	return w.health.known()
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
	if !w.health.since(time.Time{}) {
		w.health.check(ctx) // do not announce a worker whose CLI is unchecked
	}
	host, _ := os.Hostname() // it succeeded in New
	err := w.store.Workers.Beat(ctx, store.Worker{
		ID: w.id, Host: host, Version: w.cfg.Version, Pid: os.Getpid(), Slots: w.slots.total, Running: w.slots.running(),
		Started: w.started, Draining: w.live.draining(), Health: format.JSON(w.health.known()), Notices: w.cfg.Notices, URL: w.cfg.URL, Memory: w.slots.memory.known(),
		Credential: w.cfg.Credential,
	})
	if err != nil && ctx.Err() == nil {
		w.log.Warn("beat", "worker", w.id, "err", err)
	}
}

// watchData detects that Redis has lost its data. Only one goroutine calls it. Live runs restore their own records.
func (w *Worker) watchData(ctx context.Context) {
	epoch, lost, err := w.store.Doctor.Epoch(ctx, w.epoch)
	if err != nil {
		return // beat logs the error
	}
	known := w.epoch
	w.epoch = epoch
	if known == "" || epoch == known {
		return
	}
	w.log.Error("redis lost its data: tasks that waited are gone", "noticed", lost)
	if err := w.queue.Register(ctx); err != nil {
		w.log.Warn("register queues", "err", err)
	}
}

// caps returns the limits in the form that a claim takes.
func (c Config) caps() []store.Cap { return c.Policy.Limits.Caps(c.Credential) }
