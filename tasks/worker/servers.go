package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

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
		err = w.process(ctx, class, id, n, func(e tasks.Ending) {
			if _, err := t.ResultWriter().Write([]byte(e.Word())); err != nil {
				w.cfg.Log.Debug("note the ending for asynq", "run", id, "err", err)
			}
		})
		return w.storable(err)
	}))
	if err != nil {
		set.poller.stop()
		return nil, fmt.Errorf("start queues: %w", err)
	}
	return set, nil
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
