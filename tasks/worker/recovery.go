package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// recovery repairs the state that a dead worker leaves: a run without a claim waits again, and a waiting task without a
// delivery gets one. Every worker is a candidate, and only the leader does it. If two workers believe that they lead,
// the store lets one of them win. Only one goroutine uses it.
type recovery struct {
	*Config

	tasks  *taskReader
	waits  *waitNotices
	leader *store.Leader
	leads  atomic.Bool

	after string            // the walk through all live tasks continues after this one, or begins if ""
	first map[string]string // the first task of each thread in this walk
}

// One pass over live tasks reads lookStep tasks at a time, few enough to be repaired within a leader's lease, and at
// most lookMost. A larger backlog takes several passes. Recovery is not delayed by that, because each pass examines
// the running tasks first, and then at most unblockedMost that wait and are not blocked.
const (
	lookStep      = 100
	lookMost      = 500
	unblockedMost = 5000
)

// reconcile examines every run and continues the walk through all live tasks.
func (r *recovery) reconcile(ctx context.Context) {
	term, err := r.leader.Lead(ctx)
	r.leads.Store(err == nil && term != "")
	if err == nil && term != "" {
		err = r.examine(ctx, term)
	}
	if ctx.Err() == nil {
		r.warn(err, "reconcile")
	}
}

func (r *recovery) examine(ctx context.Context, term string) error {
	running, err := r.Store.Running(ctx)
	for part := range slices.Chunk(running, lookStep) {
		if err == nil {
			err = r.recoverDead(ctx, term, part)
		}
		if again, lerr := r.leader.Lead(ctx); err == nil && (lerr != nil || again != term) {
			return lerr // another leader may have begun
		}
	}
	if err == nil {
		err = errors.Join(r.Store.CallUp(ctx, r.Policy.Limits.Caps(r.Credential)...), r.arrange(ctx, running))
	}
	if r.after == "" {
		r.first = map[string]string{} // a walk begins; the one before may have ended early
	}
	// Repairs take time, too: after one interval, the rest is left to the next pass.
	for begun, looked := time.Now(), 0; err == nil && looked < lookMost &&
		time.Since(begun) < r.Timing.Reconcile; looked += lookStep {
		if again, err := r.leader.Lead(ctx); err != nil || again != term {
			return err // another leader may have begun
		}
		var live []store.LiveRecord
		if live, r.after, err = r.Store.LiveAfter(ctx, r.after, lookStep); err != nil {
			return err
		}
		live = slices.DeleteFunc(live, func(rec store.LiveRecord) bool {
			if rec.Unreadable == "" {
				r.first[rec.Thread] = cmp.Or(r.first[rec.Thread], rec.ID)
				return false
			}
			r.passOver(ctx, rec)
			return true
		})
		if err = r.recoverDead(ctx, term, live); err == nil {
			err = r.keep(ctx, live)
		}
		if r.after == "" {
			return err // the next pass starts from the beginning
		}
	}
	return err
}

// arranged is how many deliveries of a queue are in the order of shares: more than start between two passes.
const arranged = 50

// arrange puts the deliveries that come next into the order of their repositories' shares. By itself a queue would give
// all slots to a repository with thousands of tasks until these have ended. If no leader does it, only that order is
// lost.
func (r *recovery) arrange(ctx context.Context, running []store.LiveRecord) error {
	unblocked, err := r.Store.Unblocked(ctx, unblockedMost)
	if err != nil {
		return err
	}
	var demand tasks.Demand
	for _, rec := range slices.Concat(running, unblocked) {
		demand.Add(rec, time.Now())
	}
	startable := demand.Startable(r.Policy.Limits.Caps(""))
	queues := map[string]bool{}
	for _, rec := range startable {
		queues[rec.Queue()] = true
	}
	for queue := range queues {
		var next []string
		for _, rec := range demand.ByShare(startable, queue, arranged) {
			next = append(next, tasks.DeliveryID(rec.ID, rec.Delivery))
		}
		if err := r.Queue.ToFront(ctx, queue, next...); err != nil {
			return err
		}
	}
	return nil
}

// resign gives up the leadership, so that another worker leads at once.
func (r *recovery) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r.warn(r.leader.Resign(ctx), "resign")
}

// recoverDead takes over runs whose claims have been missing for Timing.Observe. Redis counts that time, so it
// continues across passes and leaders' restarts of a pass. A new leader starts counting from zero: if Redis was
// unreachable for as long as a lease, claims of live workers may be missing, and after a shorter time these workers
// have the rest of Observe to restore them.
func (r *recovery) recoverDead(ctx context.Context, term string, live []store.LiveRecord) error {
	unclaimed := slices.DeleteFunc(slices.Clone(live), func(rec store.LiveRecord) bool {
		return rec.State != store.Running || rec.Claimed || rec.Unreadable != ""
	})
	silent, err := r.Store.Silent(ctx, term, unclaimed...)
	if err != nil {
		return err
	}
	for _, rec := range unclaimed {
		// otherwise the owner has restored its claim, or the task ended
		if since, is := silent[rec.ID]; is && since >= r.Timing.Observe {
			r.recover(ctx, rec)
		}
	}
	return nil
}

// recover takes over a run whose worker died. The run's keeper has already ended it.
func (r *recovery) recover(ctx context.Context, rec store.LiveRecord) {
	now, err := r.Store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, true)
	if errors.Is(err, store.ErrStale) {
		return // another worker was faster, or the run is alive after all
	}
	if err != nil {
		r.Log.Warn("recover task", "run", rec.ID, "err", err)
		return
	}
	r.Meter.Returned(rec.Class, ReturnCrash)
	r.Log.Warn("worker died, task recovered", "run", rec.ID, "thread", rec.Thread, "crashes", now.Crashes)
	lost := now.Crashes > rec.Crashes && now.Crashes >= maxCrashes // otherwise this death does not count
	if lost {
		_, err := tasks.EndWaiting(ctx, r.Store, rec.ID, tasks.Ending{Kind: tasks.Lost, At: time.Now()})
		r.warn(err, "end task", "run", rec.ID) // the outbox posts the message: a source that hangs delays no recovery
	}
	r.warn(r.Queue.Deliver(ctx), "make deliveries")
	if lost {
		if now, err = r.Store.Threads.Next(ctx, rec.Thread); err != nil {
			return // none waits
		}
	}
	err = r.Queue.ToFront(ctx, now.Queue(), tasks.DeliveryID(now.ID, now.Delivery)) // it has had its turn
	r.warn(err, "put task first", "run", now.ID)
}

// keep makes sure that waiting tasks are going to have a delivery, and that they wait in the right place.
func (r *recovery) keep(ctx context.Context, live []store.LiveRecord) error {
	for _, rec := range live {
		switch {
		case rec.State != store.Waiting:
		case rec.CancelCause != "":
			// It was cancelled while it ran, and then it was handed back or its worker died.
			_, err := tasks.EndWaiting(ctx, r.Store, rec.ID, tasks.CancellationOf(rec.Record).Ending())
			r.warn(err, "end task", "run", rec.ID)
		case r.Policy.PoolOf(rec.Record) != rec.Pool:
			r.warn(move(ctx, r.Config, rec.Record), "move task to another pool", "run", rec.ID)
		}
	}
	return errors.Join(r.Store.KeepReady(ctx, live...), r.tend(ctx, live))
}

// tend wakes blocked tasks whose turn may have come without a step that noticed it, and tells people the places of the
// others.
func (r *recovery) tend(ctx context.Context, live []store.LiveRecord) error {
	var blocked []store.Record
	explained := map[string]string{}
	for _, rec := range live {
		if rec.State == store.Waiting && rec.Blocked != (store.Blocked{}) {
			blocked = append(blocked, rec.Record)
			explained[rec.ID] = rec.Explained
		}
	}
	places, err := r.Store.Places(ctx, blocked)
	if err != nil {
		return err
	}
	var wake []string
	for i, rec := range blocked {
		place, inLine, told := places[i], rec.Blocked.Scope != "", explained[rec.ID]
		if place == 0 || !inLine && r.first[rec.Thread] == rec.ID {
			wake = append(wake, rec.ID)
			continue
		}
		if inLine || told != "" || place != rec.Blocked.Place { // the sender knows the first place in a thread
			rec.Blocked.Place = place
			r.waits.postPlace(waitNotice{id: rec.ID, delivery: rec.Delivery}, rec.Blocked, told)
		}
	}
	return r.Store.Wake(ctx, wake...)
}

// deliverEvery is how often the leader makes deliveries.
const deliverEvery = 250 * time.Millisecond

// deliver enqueues the tasks that may start, while this worker leads.
func (r *recovery) deliver(ctx context.Context) {
	if r.leads.Load() {
		r.warn(r.Queue.Deliver(ctx), "make deliveries")
	}
}

// passOver reports a live record that cannot be decoded, and sets it aside if no version can use it, so that its
// thread continues. A record that another version may be able to read stays.
func (r *recovery) passOver(ctx context.Context, rec store.LiveRecord) {
	err := r.Store.SetAside(ctx, rec.ID)
	if err == nil {
		r.Log.Error("unreadable record set aside", "run", rec.ID, "why", rec.Unreadable)
	}
	r.tasks.noteUnreadable(ctx, &tasks.UnreadableError{ID: rec.ID, Why: rec.Unreadable})
}

// A task waits in a queue of the pool that its repository had when it was submitted. If that has changed in
// errand.yaml, the leader moves the task while it waits, and a worker that claims it gives it back and moves it. While
// processes have different versions of errand.yaml, a task may go back and forth, which poolWait slows down.

// poolWait is when a task that was moved can be taken, ± 50 %.
const poolWait = 500 * time.Millisecond

// otherPool postpones a claimed task that another pool must run.
type otherPool struct{ *tasks.ErrLater }

func (o otherPool) Unwrap() error { return o.ErrLater }

func belongsTo(pool string) otherPool {
	return otherPool{&tasks.ErrLater{
		At: time.Now().Add(around(poolWait)), Why: "it belongs to pool " + tasks.PoolName(pool),
	}}
}

// move gives a waiting task to the pool of its repository. It does nothing if the task no longer waits.
func move(ctx context.Context, c *Config, rec store.Record) error {
	pool, at := c.Policy.PoolOf(rec), time.Now().Add(around(poolWait))
	if rec.At.After(at) {
		at = rec.At
	}
	switch err := c.Queue.Move(ctx, rec, pool, at); {
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	c.Log.Info("task moved", "run", rec.ID, "from", tasks.PoolName(rec.Pool), "to", tasks.PoolName(pool))
	return nil
}
