package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// serverSet is an asynq server and what feeds it. asynq can neither pause a server nor restart it: a worker that can
// run tasks again starts a new set, and the old one ends after its last delivery.
type serverSet struct {
	server   *asynq.Server
	poller   *poller
	handling sync.RWMutex // read-locked by each delivery that is being processed
	ended    atomic.Bool  // the set is retired and its deliveries have ended
}

// cordonState says whether a worker is cordoned. A worker takes no tasks while it is unknown, so that a cordon survives
// a restart of its workers.
type cordonState int32

const (
	unknown cordonState = iota
	admitted
	cordoned
)

// takeTasks takes deliveries until ctx ends, whenever this worker can run tasks and is not cordoned. Then it interrupts
// the live runs, hands them back to the fleet and returns.
func (w *Worker) takeTasks(ctx context.Context) error {
	var current *serverSet
	var sets []*serverSet // all sets that may still have deliveries
	defer func() { w.shutdown(context.WithoutCancel(ctx), sets) }()
	for {
		state := cordonState(w.cordonState.Load())
		switch ready := w.health.state().OK && state == admitted; {
		case ready && current == nil:
			set, err := w.serve()
			if err != nil {
				return err
			}
			current, sets = set, append(slices.DeleteFunc(sets, func(s *serverSet) bool { return s.ended.Load() }), set)
		case !ready && current != nil:
			current.retire()
			current = nil
		}
		if is := state == cordoned; w.cordoned.Swap(is) != is {
			w.cfg.Log.Info("cordon changed", "worker", w.id, "cordoned", is)
		}
		w.beat(ctx) // inform the fleet at once
		select {
		case <-w.health.news:
		case <-ctx.Done():
			w.cfg.Log.Info("worker stops", "worker", w.id, "running", w.slots.running())
			return nil
		}
	}
}

// serve starts a set.
func (w *Worker) serve() (*serverSet, error) {
	set := &serverSet{poller: newPoller(w.cfg.Store, w.cfg.Pool, w.slots.total, &w.peers)}
	set.server = w.cfg.Queue.Server(w.cfg.Pool, set.poller.concurrency(), set.poller, w.cfg.Timing.Shutdown, w.cfg.Log)
	set.poller.start()
	err := set.server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		queue, _ := asynq.GetQueueName(ctx)
		defer set.poller.done(queue)
		if !set.handling.TryRLock() {
			return unable() // it was fetched while the set was being retired
		}
		defer set.handling.RUnlock()
		w.handled.Add(1)
		defer w.handled.Done()
		id := string(t.Payload())
		n, err := tasks.DeliveryNumber(id, t.ResultWriter().TaskID())
		if err != nil {
			return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
		}
		_, class := store.CutQueue(queue)
		return w.process(ctx, class, id, n)
	}))
	if err != nil {
		set.poller.stop()
		return nil, fmt.Errorf("start queues: %w", err)
	}
	return set, nil
}

// stop makes the set take no more deliveries. asynq waits for a poll that is held back, so that has to end first.
func (s *serverSet) stop() {
	s.poller.stop()
	s.server.Stop()
}

// retire stops the set, and ends it when its deliveries have ended; they are not interrupted.
func (s *serverSet) retire() {
	s.stop()
	go func() {
		s.handling.Lock() // never unlocked: a late delivery is handed back
		s.server.Shutdown()
		s.ended.Store(true)
	}()
}

// shutdown stops all sets in parallel, because each may take the whole of Timing.Shutdown. asynq does not wait for a
// delivery whose lease or timeout ended or that was cancelled, although its run may be alive.
func (w *Worker) shutdown(ctx context.Context, sets []*serverSet) {
	for _, s := range sets {
		s.stop()
	}
	w.drain()
	late := time.After(w.cfg.Timing.Shutdown)
	var down sync.WaitGroup
	down.Go(func() { w.beat(ctx) }) // the fleet lists the worker for a while, and not as ready
	for _, s := range sets {
		down.Go(s.server.Shutdown)
	}
	down.Wait()
	done := make(chan struct{})
	go func() { w.handled.Wait(); close(done) }()
	select {
	case <-done:
	case <-late:
	}
}

// byQueue is the actor of such a cancel. asynq does not know who it was.
const byQueue = "the queue's console"

// forwardAsynqCancels cancels the tasks whose deliveries are cancelled through asynq. asynq itself would only take
// the delivery from its handler and deliver it again later, while the detached run continues (hibiken/asynq#532,
// #968). Every worker receives the cancel and any may record it; the first one counts.
func (w *Worker) forwardAsynqCancels(ctx context.Context) {
	w.cfg.Queue.Cancels(ctx, func(delivery string) {
		id, err := w.desk.Delivered(ctx, delivery)
		if err == nil {
			_, err = w.desk.Cancel(ctx, id, byQueue)
		}
		w.cfg.warn(err, "cancel task", "run", delivery)
	})
}

// health is the state of this worker's CLI. While the CLI cannot be used, the worker takes no tasks and checks the CLI
// more often, so that a fix takes effect soon.
type health struct {
	*Config

	news chan struct{} // holds a token when the worker may have become able or unable to take tasks

	asking sync.Mutex // one check at a time, because a check starts the CLI twice

	mu     sync.Mutex
	last   healthState
	turned chan struct{} // closed when last changes, and set to nil; nil until turns is called
}

// healthState is the result of a check; zero before the first one.
type healthState struct {
	agent.Health
	at time.Time // when the check ended
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
	answer := h.Runner.Health(ctx, h.MinVersion)
	if full := h.full(); answer.OK && full != "" {
		answer.OK, answer.Problem, answer.Sentence = false, full, "The worker's disk is full."
		answer.Remedy = "free space there, or keep fewer clones and logs (ERRAND_KEEP_CLONES_GB, ERRAND_KEEP_LOGS_GB)"
	}
	if ctx.Err() != nil {
		return // the check was interrupted and says nothing about the CLI
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.last
	h.last = healthState{answer, time.Now()}
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

// The least free space with which a worker takes tasks. A worker that takes none needs twice as much to begin again.
const (
	leastBytes = 256 << 20
	leastFiles = 1000
)

// full returns which disk has too little room for another run, or "".
func (h *health) full() string {
	least := uint64(1)
	if last := h.state(); !last.at.IsZero() && !last.OK {
		least = 2
	}
	for _, dir := range h.Disks {
		var s unix.Statfs_t
		if h.Statfs(dir, &s) != nil {
			continue // the directory does not exist yet
		}
		if free := s.Bavail * uint64(s.Bsize); free < least*leastBytes { //nolint:gosec // a size is positive
			return fmt.Sprintf("the disk of %s has %d MiB left", dir, free>>20)
		}
		if s.Files > 0 && s.Ffree < least*leastFiles { // some file systems do not count files
			return fmt.Sprintf("the disk of %s has room for %d files only", dir, s.Ffree)
		}
	}
	return ""
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

// good reports whether a recent check found a usable CLI.
func (h *health) good() bool {
	last := h.state()
	return last.OK && time.Since(last.at) < h.Timing.Health*3/2
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

// blame checks the CLI again after a failure that may be the worker's fault, because the last check may be older than
// what broke the CLI. An error hands the task back; nil means that the failure is the task's.
func (h *health) blame(ctx context.Context, failure *agent.Error) error {
	if failure == nil || !slices.Contains(machineClasses, failure.Class) {
		return nil
	}
	if h.check(ctx); !h.state().OK {
		return unable()
	}
	return nil
}
