// Package recovery repairs what dead workers leave, and tells people when no worker can run their tasks. Every worker
// is a candidate for it, and only the leader works: see [Recovery].
package recovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/notices"
)

// Recovery repairs the state that a dead worker leaves: a run without a claim waits again, and a waiting task without a
// delivery gets one. If two workers believe that they lead, the store lets one of them win. Only one goroutine uses it,
// but for Deliver. Its exported fields are required.
type Recovery struct {
	Store   *store.Store
	Queue   *queue.Queue
	Policy  rights.Policy
	Notices *notices.Notifier
	Leader  *store.Leader
	// Observe is how long a claim must be missing before its run counts as dead. It is also how long a task must wait
	// before its thread is told that no worker can run it.
	Observe time.Duration
	// Every is the time between two passes.
	Every time.Duration
	// Crashed counts a task of a class whose worker died.
	Crashed func(class string)
	Log     *slog.Logger

	leads  atomic.Bool
	passes int // that this worker has made as the leader

	after string            // the walk through all live tasks continues after this one, or begins if ""
	heads map[string]string // the first task of each thread in this walk

	informing atomic.Bool          // threads are being informed
	looked    map[string]time.Time // by task: when its thread was informed, or could not be; used while informing
}

// seldom is how many passes there are to one that also looks for lost deliveries and claims that live too long: that
// reads as much as the rest of the pass.
const seldom = 5

// One pass over live tasks reads lookStep tasks at a time, few enough to be repaired within a leader's lease, and at
// most lookMost. A larger backlog takes several passes. Recovery is not delayed by that, because each pass examines
// the running tasks first, and then at most unblockedMost that wait and are not blocked.
const (
	lookStep      = 100
	lookMost      = 500
	unblockedMost = 5000
)

// Reconcile examines every run and continues the walk through all live tasks.
func (r *Recovery) Reconcile(ctx context.Context) {
	term, err := r.Leader.Lead(ctx)
	r.leads.Store(err == nil && term != "")
	if err == nil && term != "" {
		err = r.examine(ctx, term)
	}
	if ctx.Err() == nil {
		logline.Warn(r.Log, err, "reconcile")
	}
}

// examine makes one pass.
func (r *Recovery) examine(ctx context.Context, term string) error {
	running, err := r.Store.Running(ctx)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(running, lookStep) {
		if err := r.recoverDead(ctx, term, part); err != nil {
			return err
		}
		if leads, err := r.stillLeads(ctx, term); !leads {
			return err
		}
	}

	if r.passes%seldom == 0 {
		// asynq delivers what this leaves.
		if err := r.Queue.ReplaceLost(ctx); ctx.Err() == nil {
			logline.Warn(r.Log, err, "replace lost deliveries")
		}
		if err := r.Store.BoundClaims(ctx, running); err != nil {
			return err
		}
	}
	r.passes++
	err = errors.Join(r.Store.CallUp(ctx, r.Policy.Limits.Caps()...), r.orderByShare(ctx, running))
	if err != nil {
		return err
	}

	if r.after == "" { // a walk begins; the one before may have ended early
		r.heads = map[string]string{}
	}
	var late []store.LiveRecord
	defer func() { r.inform(ctx, late) }()
	// Repairs take time, too: after one interval, the rest is left to the next pass.
	for begun, looked := time.Now(), 0; looked < lookMost && time.Since(begun) < r.Every; looked += lookStep {
		if leads, err := r.stillLeads(ctx, term); !leads {
			return err
		}
		live, err := r.walk(ctx)
		if err != nil {
			return err
		}
		late = append(late, r.late(live)...)
		if r.after == "" {
			return nil // the next pass starts from the beginning
		}
	}
	return nil
}

// stillLeads reports whether this worker leads in the same term: another leader may have begun.
func (r *Recovery) stillLeads(ctx context.Context, term string) (bool, error) {
	again, err := r.Leader.Lead(ctx)
	return err == nil && again == term, err
}

// walk repairs the next live tasks and returns them. Afterwards r.after is "" if there are no more.
func (r *Recovery) walk(ctx context.Context) (live []store.LiveRecord, _ error) {
	found, next, err := r.Store.LiveAfter(ctx, r.after, lookStep)
	r.after = next
	if err != nil {
		return nil, err
	}
	for _, rec := range found {
		if rec.Unreadable != "" {
			// No version can use it, so its thread continues; a record that another version may be able to read stays.
			if r.Store.SetAside(ctx, rec.ID) == nil {
				r.Log.Error("unreadable record set aside", "run", rec.ID, "why", rec.Unreadable)
			}
			continue
		}
		r.heads[rec.Thread] = cmp.Or(r.heads[rec.Thread], rec.ID)
		live = append(live, rec)
	}
	return live, r.ensureDeliveries(ctx, live)
}

// ordered is how many deliveries of a queue are in the order of shares: more than start between two passes.
const ordered = 50

// orderByShare puts the deliveries that come next into the order of their repositories' shares. By itself a queue would
// give all slots to a repository with thousands of tasks until these have ended. If no leader does it, only that order
// is lost.
func (r *Recovery) orderByShare(ctx context.Context, running []store.LiveRecord) error {
	unblocked, err := r.Store.Unblocked(ctx, unblockedMost)
	if err != nil {
		return err
	}
	var demand queue.Demand
	for _, rec := range slices.Concat(running, unblocked) {
		demand.Add(rec, time.Now())
	}
	startable := demand.Startable(r.Policy.Limits.Caps())
	queues := map[string]bool{}
	for _, rec := range startable {
		queues[rec.Queue()] = true
	}
	for name := range queues {
		var next []string
		for _, rec := range demand.ByShare(startable, name, ordered) {
			next = append(next, queue.DeliveryID(rec.ID, rec.Delivery))
		}
		if err := r.Queue.ToFront(ctx, name, next...); err != nil {
			return err
		}
	}
	return nil
}

// Resign gives up the leadership, so that another worker leads at once.
func (r *Recovery) Resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	logline.Warn(r.Log, r.Leader.Resign(ctx), "resign")
}

// recoverDead takes over runs whose claims have been missing for Observe. Redis counts that time, so it
// continues across passes and leaders' restarts of a pass. A new leader starts counting from zero: if Redis was
// unreachable for as long as a lease, claims of live workers may be missing, and after a shorter time these workers
// have the rest of Observe to restore them.
func (r *Recovery) recoverDead(ctx context.Context, term string, live []store.LiveRecord) error {
	unclaimed := slices.DeleteFunc(slices.Clone(live), func(rec store.LiveRecord) bool {
		return rec.State != store.Running || rec.Claimed || rec.Unreadable != ""
	})
	silent, err := r.Store.Silent(ctx, term, unclaimed...)
	if err != nil {
		return err
	}
	for _, rec := range unclaimed {
		// otherwise the owner has restored its claim, or the task ended
		if since, is := silent[rec.ID]; is && since >= r.Observe {
			r.TakeOver(ctx, rec)
		}
	}
	return nil
}

// TakeOver takes over a run whose worker died. The run's keeper has already ended it.
func (r *Recovery) TakeOver(ctx context.Context, rec store.LiveRecord) {
	now, err := r.Store.Requeue(ctx, rec.ID, rec.Delivery, rec.Fence, true)
	if errors.Is(err, store.ErrStale) {
		return // another worker was faster, or the run is alive after all
	}
	if err != nil {
		r.Log.Warn("recover task", "run", rec.ID, "err", err)
		return
	}
	r.Crashed(rec.Class)
	r.Log.Warn("worker died, task recovered", "run", rec.ID, "thread", rec.Thread, "crashes", now.Crashes)
	lost := now.Crashes > rec.Crashes && now.Crashes >= record.MaxCrashes // otherwise this death does not count
	if lost {
		// The outbox posts the message: a source that hangs delays no recovery.
		_, err := record.EndWaiting(ctx, r.Store, rec.ID, tasks.Ending{Kind: tasks.Lost, At: time.Now()})
		logline.Warn(r.Log, err, "end task", "run", rec.ID)
	}
	logline.Warn(r.Log, r.Queue.Deliver(ctx), "make deliveries")
	if lost {
		if now, err = r.Store.Threads.Next(ctx, rec.Thread); err != nil {
			return // none waits
		}
	}
	err = r.Queue.ToFront(ctx, now.Queue(), queue.DeliveryID(now.ID, now.Delivery)) // it has had its turn
	logline.Warn(r.Log, err, "put task first", "run", now.ID)
}

// ensureDeliveries makes sure that waiting tasks are going to have a delivery, and that they wait in the right place.
func (r *Recovery) ensureDeliveries(ctx context.Context, live []store.LiveRecord) error {
	for _, rec := range live {
		if rec.State != store.Waiting {
			continue
		}
		if rec.CancelCause != "" {
			// It was cancelled while it ran, and then it was handed back or its worker died.
			_, err := record.EndWaiting(ctx, r.Store, rec.ID, record.CancellationOf(rec.Record).Ending())
			logline.Warn(r.Log, err, "end task", "run", rec.ID)
		} else if r.Policy.PoolOf(rec.Record) != rec.Pool {
			logline.Warn(r.Log, r.move(ctx, rec.Record), "move task to another pool", "run", rec.ID)
		}
	}
	return r.wake(ctx, live)
}

// move gives a waiting task to the pool of its repository, which has changed in errand.yaml since it was submitted. It
// does nothing if the task no longer waits.
func (r *Recovery) move(ctx context.Context, rec store.Record) error {
	pool := r.Policy.PoolOf(rec)
	err := r.Queue.Move(ctx, rec, pool)
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Log.Info("task moved", "run", rec.ID, "from", tasks.PoolName(rec.Pool), "to", tasks.PoolName(pool))
	return nil
}

// wake wakes waiting tasks that no step may have made ready. It tells people the places of the others, and what a
// worker that handed a task back has not told them, because it died or another notice came just before.
func (r *Recovery) wake(ctx context.Context, live []store.LiveRecord) error {
	var blocked []store.Record
	var wake, told []string
	tell := func(rec store.Record, key, last string) {
		if key != last {
			r.Notices.Post(notices.Notice{ID: rec.ID, Delivery: rec.Delivery, Key: key, Repeats: true})
		}
	}
	for _, rec := range live {
		switch {
		case rec.State != store.Waiting:
		case rec.Blocked == (store.Blocked{}):
			wake = append(wake, rec.ID)
			if rec.Tell != "" && time.Now().Before(rec.At) {
				tell(rec.Record, rec.Tell, rec.Explained)
			}
		default:
			blocked = append(blocked, rec.Record)
			told = append(told, rec.Explained)
		}
	}
	places, err := r.Store.Places(ctx, blocked)
	for i, place := range places { // none after an error
		rec := blocked[i]
		inLine := rec.Blocked.Scope != ""
		if place == 0 || !inLine && r.heads[rec.Thread] == rec.ID {
			wake = append(wake, rec.ID)
			continue
		}
		if inLine || told[i] != "" || place != rec.Blocked.Place { // the sender knows the first place in a thread
			rec.Blocked.Place = place
			tell(rec, notices.PlaceKey(rec.Blocked), told[i])
		}
	}
	return errors.Join(err, r.Store.Wake(ctx, wake...))
}

// DeliverEvery is how often the leader makes deliveries.
const DeliverEvery = 250 * time.Millisecond

// Deliver enqueues the tasks that may start, while this worker leads.
func (r *Recovery) Deliver(ctx context.Context) {
	if r.leads.Load() {
		logline.Warn(r.Log, r.Queue.Deliver(ctx), "make deliveries")
	}
}
