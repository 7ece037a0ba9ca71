package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

// serverSet is an asynq server for each class. asynq can neither pause a server nor restart it: a worker that can run
// tasks again starts a new set, and the old one ends after its last delivery.
type serverSet struct {
	servers  []*asynq.Server
	shutdown func() // ends all servers, and returns when they have ended, however often it is called
	polls    time.Duration
	handling sync.RWMutex // read-locked by each delivery that is being processed
	ended    atomic.Bool  // the set is retired and its deliveries have ended
}

// takeTasks takes deliveries until ctx ends, whenever this worker can run tasks and is not cordoned. Then it interrupts
// the live runs, hands them back to the fleet and returns.
func (w *Worker) takeTasks(ctx context.Context) error {
	var current *serverSet
	var sets []*serverSet // all sets that may still have deliveries
	defer func() { w.shutdown(context.WithoutCancel(ctx), sets) }()
	waited := w.waited()
	var unable <-chan time.Time
	var idle <-chan struct{} // after one of them, what says that no delivery is being processed
	for {
		state := cordonState(w.cordonState.Load())
		ready := w.health.State().OK && state == admitted && !w.once.claimed.Load()
		if current != nil && (!ready || w.pollsWrong(current)) {
			current.retire()
			current = nil
		}
		if ready && current == nil {
			set, err := w.serve(ctx)
			if err != nil {
				return err
			}
			current, sets = set, append(slices.DeleteFunc(sets, func(s *serverSet) bool { return s.ended.Load() }), set)
		}
		w.taking.Store(current != nil)
		if is := state == cordoned; w.cordoned.Swap(is) != is {
			w.cfg.Log.Info("cordon changed", "worker", w.id, "cordoned", is)
		}
		w.beat(ctx) // inform the fleet at once
		unable = w.unable(unable)
		select {
		case <-w.health.News():
		case err := <-w.once.over:
			return err
		case <-waited:
			waited, idle = nil, w.once.idle // a delivery that is being processed may still become the one task
		case <-unable:
			idle = w.once.idle
		case <-idle:
			return w.nothingCame()
		case <-ctx.Done():
			w.cfg.Log.Info("worker stops", "worker", w.id, "running", w.slots.Running())
			return nil
		}
	}
}

// pollsWrong reports whether the number of workers in the pool has changed so much that the set should poll at another
// rate.
func (w *Worker) pollsWrong(s *serverSet) bool {
	workers := int(w.peers.Load())
	polls := queue.PollInterval(workers)
	return workers > 0 && (polls >= 2*s.polls || 2*polls <= s.polls)
}

// serve starts a set.
func (w *Worker) serve(ctx context.Context) (*serverSet, error) {
	logline.Warn(w.cfg.Log, w.cfg.Queue.Pauses(ctx, w.cfg.Pool), "pause queues")
	workers := int(w.peers.Load())
	set := &serverSet{polls: queue.PollInterval(workers)}
	set.shutdown = sync.OnceFunc(func() { set.each((*asynq.Server).Shutdown) })
	for _, class := range tasks.Classes {
		server := queue.NewServer(w.cfg.Queue, queue.ServerConfig{
			Queue: store.QueueOf(w.cfg.Pool, class), Concurrency: machine.SlotsOf(class, w.slots.Total()),
			Workers: workers, Shutdown: w.cfg.Timing.Shutdown, Log: w.cfg.Log,
		})
		err := server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			return w.handle(ctx, set, class, t)
		}))
		if err != nil {
			set.retire()
			return nil, fmt.Errorf("start queues: %w", err)
		}
		set.servers = append(set.servers, server)
	}
	return set, nil
}

// handle processes a delivery.
func (w *Worker) handle(ctx context.Context, set *serverSet, class string, t *asynq.Task) error {
	if w.drained.Err() != nil || !set.handling.TryRLock() {
		return machine.Unable() // it was fetched while the servers were being stopped
	}
	defer set.handling.RUnlock()
	w.handled.Add(1)
	defer w.handled.Done()
	id := string(t.Payload())
	n, err := queue.DeliveryNumber(id, t.ResultWriter().TaskID())
	if err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	if !w.mayProcess() {
		return machine.Unable() // it was fetched beside the one task
	}
	ending, err := w.process(ctx, class, id, n)
	if ending != nil {
		if _, err := t.ResultWriter().Write([]byte(ending.Word())); err != nil {
			w.cfg.Log.Debug("note the ending for asynq", "run", id, "err", err)
		}
	}
	if errors.Is(err, attempt.ErrReturned) {
		return asynq.RevokeTask
	}
	return w.storable(err)
}

// storedError is an error whose text asynq stores in Redis.
type storedError struct {
	text string
	err  error
}

func (e *storedError) Error() string { return e.text }
func (e *storedError) Unwrap() error { return e.err }

// storable removes secrets from the text of a delivery's error, which may quote a remote or a program.
func (w *Worker) storable(err error) error {
	if err == nil {
		return nil
	}
	return &storedError{w.cfg.Policy.Redactor.String(err.Error()), err}
}

// each calls do for all servers of the set at once. asynq does not interrupt the pause between two polls.
func (s *serverSet) each(do func(*asynq.Server)) {
	var all sync.WaitGroup
	for _, server := range s.servers {
		all.Go(func() { do(server) })
	}
	all.Wait()
}

// retire makes the set take no more deliveries, and ends it when its deliveries have ended; they are not interrupted.
func (s *serverSet) retire() {
	go s.each((*asynq.Server).Stop)
	go func() {
		s.handling.Lock() // never unlocked: a late delivery is handed back
		s.shutdown()
		s.ended.Store(true)
	}()
}

// shutdown stops all sets in parallel, because each may take the whole of Timing.Shutdown. asynq does not wait for a
// delivery whose lease or timeout ended or that was cancelled, although its run may be alive.
func (w *Worker) shutdown(ctx context.Context, sets []*serverSet) {
	for _, s := range sets {
		go s.each((*asynq.Server).Stop)
	}
	w.drain()
	late := time.After(w.cfg.Timing.Shutdown)
	var down sync.WaitGroup
	down.Go(func() { w.beat(ctx) }) // the fleet lists the worker for a while, and not as ready
	for _, s := range sets {
		down.Go(s.shutdown)
	}
	down.Wait()
	done := make(chan struct{})
	go func() { w.handled.Wait(); close(done) }()
	select {
	case <-done:
	case <-late:
	}
}
