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

// Runner runs the agent; *agent.Runner does.
type Runner interface {
	Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	Script(ctx context.Context, s agent.Script) (agent.Scripted, error)
	Health(ctx context.Context, minVersion string) agent.Health
	Sweep(ctx context.Context) error
	Offer(ctx context.Context, s agent.Spec) (agent.Offer, error)
}

// Config is what a worker needs; all but Publisher and the last block is required.
type Config struct {
	Store     *store.Store
	Queue     *tasks.Queue
	Runner    Runner
	Workspace *workspace.Workspace
	Sources   []tasks.Source
	Policy    tasks.Policy
	Publisher tasks.Publisher // nil: what runs leave in their clones stays there
	// Commands lists the verification commands of a repository: what its people want to succeed before work on a branch is published. nil: none.
	Commands   func(ctx context.Context, repo, base string) ([]string, error)
	ConsoleURL string // where /tasks/{id} shows a run, without a slash at its end; may be empty

	Slots      int             // runs at once; at least 2, so that a person never waits behind automatic work alone
	Memory     func() int64    // bytes available for further runs just now; nil: only Slots counts
	RunMemory  int64           // bytes a run needs; 0: 350 MiB
	IdleLimit  time.Duration   // of a run without a sign of work; 0: none
	Model      string          // unless a task names one; empty: the CLI's default
	MinVersion string          // of the CLI; empty: agent.MinCLI
	Version    string          // of errand
	Credential string          // names what the runs have in common to pay for the model, and tells nothing of it; empty: nothing is known
	LogDir     string          // where Runner writes the logs; empty: nothing is kept of them, and none is ever removed
	Notices    []store.Finding // about its configuration, for whoever looks after the fleet
	URL        string          // where front doors of other machines may ask for logs; empty: nowhere
	Retention  Retention       // of what is on this disk; zero: all is kept
	Meter      Meter           // nil: nothing is counted
	Log        *slog.Logger    // nil: silence

	Timing Timing // zero: the defaults
}

// Timing is the rhythm of a worker; tests shorten it.
type Timing struct {
	Observe    time.Duration // a claim must be seen missing this long before its run is taken for dead, or all workers unable before threads are told; 6 s
	Reconcile  time.Duration // between two looks at live tasks; 2 s
	Lead       time.Duration // a leader is replaced that was not heard of for this long; less than Observe; 5 s
	Outbox     time.Duration // between two looks at unposted endings; 2 s
	Beat       time.Duration // of the heart; 5 s
	Health     time.Duration // between two checks of the CLI, a twelfth of it while the CLI cannot be used; 1 min
	Answer     time.Duration // an agent waits for a person's answer; 15 min
	Checkpoint time.Duration // between two checkpoints of a run; 5 min
	Pack       time.Duration // the most it takes at a shutdown to pack an interrupted run's clone; 10 s
	Again      time.Duration // before a run that failed is tried again, give or take half; twice as long each time; 30 s
	Reset      time.Duration // after a usage limit is lifted, before its task goes on; up to three times as long; 1 min
	Release    time.Duration // between two starts after that, until a run goes well; 10 s
	Budget     time.Duration // a task waits for what others have reserved of a budget and may give back; 15 s
	Alone      time.Duration // a task with which a worker has died waits for the others on its worker to end, and then has it to itself; 2 min
	Shutdown   time.Duration // for running tasks to be interrupted and handed back; 60 s
	Discard    time.Duration // for whoever is in an old thread's directories to leave them; 30 s
	Tidy       time.Duration // between two looks for what the disk need not keep; 1 h
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

// Worker drains the queues. Run is called once.
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
	epoch     string // of Redis' data, as the beat saw it last
	timing    Timing
	meter     Meter
	log       *slog.Logger
	started   time.Time

	posters chan struct{}  // a token for each ending of the outbox that is being posted
	posting sync.WaitGroup // likewise, and of what is told of tasks that wait; Run waits for it

	tellings tellings
}

// New makes a worker with an identity of its own.
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
		cfg: c, id: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8]), store: c.Store, queue: c.Queue, desk: tasks.NewDesk(c.Store, c.Queue, c.Policy, c.Log), runner: c.Runner,
		workspace: c.Workspace, slots: newSlots(c.Slots, memory{available: c.Memory, run: c.RunMemory}, c.Log), timing: c.Timing.withDefaults(), meter: c.Meter, log: c.Log, started: time.Now(),
		posters: make(chan struct{}, posters), tellings: newTellings(),
	}
	w.health = health{runner: c.Runner, min: c.MinVersion, fresh: w.timing.Health * 3 / 2, log: c.Log, news: make(chan struct{}, 1)}
	w.recovery = recovery{leader: c.Store.Leader("recovery", w.timing.Lead)}
	w.unable = unableTold{leader: c.Store.Leader("unable", 2*w.timing.Observe)} // it looks once in Observe
	return w, nil
}

// Run works until ctx ends and then shuts down within Timing.Shutdown: it takes nothing new, interrupts what runs, hands it back to
// the fleet, and returns. The error says why it could not begin.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.runner.Sweep(ctx); err != nil {
		w.log.Warn("sweep", "worker", w.id, "err", err) // the claims of what is left have run out or will
	}
	// The loops go on through the drain: endings are still posted then, and the fleet still sees the worker.
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
		{w.timing.Observe, w.tellUnable},
		{w.timing.Tidy, w.tidy},
	} {
		running.Go(func() { every(loops, l.every, l.do) })
	}
	running.Go(func() { w.health.watch(loops, w.timing.Health) })
	running.Go(func() { w.forwardAsynqCancels(loops) })
	running.Go(func() { w.tellOffers(ctx) })
	w.log.Info("worker started", "worker", w.id, "slots", w.slots.total)
	err := w.takeTasks(ctx)
	stop()
	running.Wait()
	w.resign(context.WithoutCancel(ctx))
	w.posting.Wait()
	w.log.Info("worker stopped", "worker", w.id)
	return err
}

// Health is the latest answer of this worker's CLI; false: there is none yet. Safe for concurrent use.
func (w *Worker) Health() (agent.Health, bool) { return w.health.known(), w.health.since(time.Time{}) }

// Examine asks the CLI now, or waits for the answer to whoever is asking it. Safe for concurrent use.
func (w *Worker) Examine(ctx context.Context) agent.Health {
	w.health.check(ctx)
	return w.health.known()
}

// every calls do at once and then in that rhythm, until ctx ends.
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

// beat tells the fleet about this worker.
func (w *Worker) beat(ctx context.Context) {
	if !w.health.since(time.Time{}) {
		w.health.check(ctx) // the fleet shall not see a worker whose CLI nobody has looked at
	}
	host, _ := os.Hostname() // it worked in New
	err := w.store.Workers.Beat(ctx, store.Worker{
		ID: w.id, Host: host, Version: w.cfg.Version, Pid: os.Getpid(), Slots: w.slots.total, Running: w.slots.running(),
		Started: w.started, Draining: w.live.draining(), Health: format.JSON(w.health.known()), Notices: w.cfg.Notices, URL: w.cfg.URL, Memory: w.slots.memory.known(),
		Credential: w.cfg.Credential,
	})
	if err != nil && ctx.Err() == nil {
		w.log.Warn("beat", "worker", w.id, "err", err)
	}
}

// watchData notices that Redis has lost its data. One goroutine calls it. Runs under way put back what is needed of theirs by themselves.
func (w *Worker) watchData(ctx context.Context) {
	epoch, lost, err := w.store.Doctor.Epoch(ctx, w.epoch)
	if err != nil {
		return // the beat has said so
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

// caps are the limits as a claim takes them.
func (c Config) caps() []store.Cap { return c.Policy.Limits.Caps(c.Credential) }
