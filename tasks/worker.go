package tasks

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
	"github.com/errand-fleet/errand/workspace"
	"github.com/google/uuid"
	"github.com/hibiken/asynq"
)

// Runner runs the agent; *agent.Runner does.
type Runner interface {
	Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	Health(ctx context.Context, minVersion string) agent.Health
}

// WorkerConfig is what a worker needs; all but the last block is required.
type WorkerConfig struct {
	Store     *store.Store
	Queue     *Queue
	Runner    Runner
	Workspace *workspace.Workspace
	Sources   []Source
	Policy    Policy

	Slots      int           // runs at once; at least 2, so that a person never waits behind automatic work alone
	IdleLimit  time.Duration // of a run without a sign of work; 0: none
	Model      string        // unless a task names one; empty: the CLI's default
	MinVersion string        // of the CLI; empty: agent.MinCLI
	Version    string        // of errand
	Log        *slog.Logger  // nil: silence

	Timing Timing // zero: the defaults
}

// Timing is the rhythm of a worker; tests shorten it.
type Timing struct {
	Observe   time.Duration // a claim must be seen missing this long before its run is taken for dead; 6 s
	Reconcile time.Duration // between two looks at all live tasks; 2 s
	Outbox    time.Duration // between two looks at unposted endings; 2 s
	Beat      time.Duration // of the heart; 5 s
	Health    time.Duration // between two checks of the CLI; 1 min
	Drain     time.Duration // for running tasks to be interrupted and handed back; 45 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&t.Observe, 6*time.Second)
	set(&t.Reconcile, 2*time.Second)
	set(&t.Outbox, 2*time.Second)
	set(&t.Beat, 5*time.Second)
	set(&t.Health, time.Minute)
	set(&t.Drain, 45*time.Second)
	return t
}

// Worker drains the queues. Run is called once.
type Worker struct {
	cfg       WorkerConfig
	id        string
	store     *store.Store
	queue     *Queue
	runner    Runner
	workspace *workspace.Workspace
	slots     *slots
	live      liveRuns
	health    health
	seen      sightings
	timing    Timing
	log       *slog.Logger
	started   time.Time
}

// NewWorker makes a worker with an identity of its own.
func NewWorker(c WorkerConfig) (*Worker, error) {
	if c.Store == nil || c.Queue == nil || c.Runner == nil || c.Workspace == nil || len(c.Sources) == 0 {
		return nil, errors.New("create worker: store, queue, runner, workspace and sources are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("create worker: %w", err)
	}
	w := &Worker{
		cfg: c, id: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), uuid.NewString()[:8]), store: c.Store, queue: c.Queue, runner: c.Runner,
		workspace: c.Workspace, slots: newSlots(c.Slots), timing: c.Timing.withDefaults(), log: c.Log, started: time.Now(),
	}
	w.health = health{runner: c.Runner, min: c.MinVersion, every: w.timing.Health}
	w.seen = sightings{first: map[string]time.Time{}}
	return w, nil
}

// Run works until ctx ends and then shuts down within Timing.Drain: it takes nothing new, interrupts what runs, hands it back to
// the fleet, and returns. The error says why it could not begin.
func (w *Worker) Run(ctx context.Context) error {
	servers, err := w.serve()
	if err != nil {
		return err
	}
	// The loops go on through the drain: endings are still posted then, and the fleet still sees the worker.
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, l := range []struct {
		every time.Duration
		do    func(context.Context)
	}{
		{w.timing.Beat, w.beat},
		{w.timing.Outbox, w.postDue},
		{w.timing.Reconcile, w.reconcile},
	} {
		running.Go(func() { every(loops, l.every, l.do) })
	}
	w.log.Info("worker started", "worker", w.id, "slots", w.slots.total)
	<-ctx.Done()

	w.log.Info("worker stops", "worker", w.id, "running", w.slots.running())
	for _, s := range servers {
		s.Stop() // takes no more deliveries
	}
	w.live.drain(errDrain)
	w.live.wait(w.timing.Drain)
	for _, s := range servers {
		s.Shutdown()
	}
	stop()
	running.Wait()
	w.log.Info("worker stopped", "worker", w.id)
	return nil
}

// serve starts one asynq server per class, so that a full class keeps no other from being served.
func (w *Worker) serve() ([]*asynq.Server, error) {
	var servers []*asynq.Server
	for _, class := range Classes {
		s := w.queue.server(class, limit(class, w.slots.total), w.log)
		err := s.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			id := string(t.Payload())
			n, err := deliveryNumber(id, t.ResultWriter().TaskID())
			if err != nil {
				return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
			}
			return w.process(ctx, class, id, n)
		}))
		if err != nil {
			for _, s := range servers {
				s.Shutdown()
			}
			return nil, fmt.Errorf("start queue %s: %w", class, err)
		}
		servers = append(servers, s)
	}
	return servers, nil
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
	host, _ := os.Hostname() // it worked in NewWorker
	err := w.store.Beat(ctx, store.Worker{
		ID: w.id, Host: host, Version: w.cfg.Version, Pid: os.Getpid(), Slots: w.slots.total, Running: w.slots.running(),
		Started: w.started, Draining: w.live.draining(), Health: mustJSON(w.health.now(ctx)),
	})
	if err != nil && ctx.Err() == nil {
		w.log.Warn("beat", "worker", w.id, "err", err)
	}
}

// health is what is known of the CLI. A good answer is kept for a while; a bad one is asked again each time, so that a remedy
// works at once.
type health struct {
	runner Runner
	min    string
	every  time.Duration

	mu      sync.Mutex
	last    agent.Health
	checked time.Time
}

func (h *health) now(ctx context.Context) agent.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last.OK || time.Since(h.checked) > h.every {
		h.last, h.checked = h.runner.Health(ctx, h.min), time.Now()
	}
	return h.last
}

// problem is why no run can start, nil when one can.
func (h *health) problem(ctx context.Context) *agent.Error { return h.now(ctx).Error }

// liveRuns are the runs of this worker, to be interrupted by its drain.
type liveRuns struct {
	mu    sync.Mutex
	stops map[int]context.CancelCauseFunc
	next  int
	cause error         // set once drained
	empty chan struct{} // closed when drained and no run is left
}

// add registers a run until forget is called. During a drain it is stopped at once.
func (l *liveRuns) add(stop context.CancelCauseFunc) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops == nil {
		l.stops = map[int]context.CancelCauseFunc{}
	}
	if l.cause != nil {
		stop(l.cause)
	}
	n := l.next
	l.next++
	l.stops[n] = stop
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.stops, n)
		l.settle()
	}
}

func (l *liveRuns) settle() {
	if l.empty != nil && len(l.stops) == 0 {
		close(l.empty)
		l.empty = nil
	}
}

// drain stops all runs, present and to come.
func (l *liveRuns) drain(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, stop := range l.stops {
		stop(cause)
	}
}

func (l *liveRuns) draining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil
}

// wait returns when no run is left, or after d.
func (l *liveRuns) wait(d time.Duration) {
	l.mu.Lock()
	empty := make(chan struct{})
	l.empty = empty
	l.settle()
	l.mu.Unlock()
	select {
	case <-empty:
	case <-time.After(d):
	}
}
