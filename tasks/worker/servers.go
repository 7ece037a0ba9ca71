package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/errand-fleet/errand/tasks"
	"github.com/hibiken/asynq"
)

// serverSet is one asynq server per class, so that a full class does not block the others. asynq can neither pause a
// server nor restart it: a worker that can run tasks again starts a new set, and the old one ends after its last
// delivery.
type serverSet struct {
	servers  []*asynq.Server
	handling sync.RWMutex  // read-locked by each delivery that is being processed
	ended    chan struct{} // closed when the set is retired and its deliveries have ended
}

// takeTasks takes deliveries while this worker can run tasks (DESIGN invariant 11), until ctx ends. Then it
// interrupts the live runs, hands them back to the fleet and returns.
func (w *Worker) takeTasks(ctx context.Context) error {
	var current *serverSet
	var sets []*serverSet // all sets that may still have deliveries
	defer func() { w.shutdown(sets) }()
	for {
		switch ready := w.health.ready(); {
		case ready && current == nil:
			set, err := w.serve()
			if err != nil {
				return err
			}
			current, sets = set, append(slices.DeleteFunc(sets, (*serverSet).over), set)
		case !ready && current != nil:
			current.retire()
			current = nil
		}
		w.beat(ctx) // inform the fleet at once
		select {
		case <-w.health.news:
		case <-ctx.Done():
			w.log.Info("worker stops", "worker", w.id, "running", w.slots.running())
			return nil
		}
	}
}

// serve starts a set of servers.
func (w *Worker) serve() (*serverSet, error) {
	set := &serverSet{ended: make(chan struct{})}
	for _, class := range tasks.Classes {
		s := w.queue.Server(class, limit(class, w.slots.total), w.timing.Shutdown, w.log)
		err := s.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			if !set.handling.TryRLock() {
				return unable() // it was fetched while the set was being retired
			}
			defer set.handling.RUnlock()
			id := string(t.Payload())
			n, err := tasks.DeliveryNumber(id, t.ResultWriter().TaskID())
			if err != nil {
				return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
			}
			return w.process(ctx, class, id, n)
		}))
		if err != nil {
			w.shutdown([]*serverSet{set})
			return nil, fmt.Errorf("start queue %s: %w", class, err)
		}
		set.servers = append(set.servers, s)
	}
	return set, nil
}

// stop makes the set take no more deliveries.
func (s *serverSet) stop() {
	for _, server := range s.servers {
		server.Stop()
	}
}

// retire stops the set, and ends it when its deliveries have ended; they are not interrupted.
func (s *serverSet) retire() {
	s.stop()
	go func() {
		s.handling.Lock() // never unlocked: a late delivery is handed back
		s.end()
		close(s.ended)
	}()
}

// end waits for the set's deliveries, for as long as Timing.Shutdown.
func (s *serverSet) end() {
	var down sync.WaitGroup
	for _, server := range s.servers {
		down.Go(server.Shutdown)
	}
	down.Wait()
}

// over reports whether the set was retired and its deliveries have ended.
func (s *serverSet) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// shutdown stops all servers in parallel, because each may take the whole of Timing.Shutdown.
func (w *Worker) shutdown(sets []*serverSet) {
	for _, s := range sets {
		s.stop()
	}
	w.live.drain(errDrain)
	var down sync.WaitGroup
	for _, s := range sets {
		down.Go(s.end)
	}
	down.Wait()
}

// byQueue is the actor of such a cancel. asynq does not know who it was.
const byQueue = "the queue's console"

// forwardAsynqCancels cancels the tasks whose deliveries are cancelled through asynq. asynq itself would only take
// the delivery from its handler and deliver it again later, while the detached run continues (hibiken/asynq#532,
// #968). Every worker receives the cancel and any may record it; the first one counts.
func (w *Worker) forwardAsynqCancels(ctx context.Context) {
	w.queue.Cancels(ctx, func(delivery string) {
		id, err := w.desk.Delivered(ctx, delivery)
		if err == nil {
			_, err = w.desk.Cancel(ctx, id, byQueue)
		}
		if err != nil {
			w.log.Warn("cancel task", "run", delivery, "err", err)
		}
	})
}
