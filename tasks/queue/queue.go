// Package queue delivers tasks to workers by asynq, and says which tasks should be delivered next. A [Queue] is safe
// for concurrent use by any number of processes on one Redis.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynq only delivers tasks to workers. Its lease, its cancel and its retries are not safe for child processes that
// live for hours (docs/concurrency.md). The payload of a delivery is a task's ID. The store knows what the task is,
// whether the delivery is still valid and who may run it.

const (
	taskType = "errand"
	// retention is how long finished deliveries stay visible to operators and their IDs stay taken.
	retention = 7 * 24 * time.Hour
	// timeoutMargin keeps asynq's own deadline from passing first, because asynq then gives the delivery away while
	// the child still runs. It leaves time for the steps beside the run: set-ups, questions before it, checks.
	timeoutMargin = 3 * time.Hour
	noLimit       = 365 * 24 * time.Hour
)

// Queue wraps asynq. It is safe for concurrent use. None of its fields and methods leads to a client of go-redis: see
// [store.Client].
type Queue struct {
	store   *store.Store
	redis   store.Client
	timeout time.Duration
	enqueue enqueue // for Enqueue
}

// enqueue puts a task's n-th delivery into a queue.
type enqueue func(ctx context.Context, id, queue string, n int) error

// New returns a queue on the Redis client of a store. It closes neither. limit is the longest duration of a run; 0
// means no limit.
func New(s *store.Store, r *redis.Client, limit time.Duration) *Queue {
	if limit <= 0 {
		limit = noLimit // for asynq, 0 is its default of 30 min
	}
	q := &Queue{store: s, redis: r, timeout: limit + timeoutMargin}
	q.enqueue = q.newClient()
	return q
}

// client returns the Redis client for asynq.
func client(q *Queue) *redis.Client { return q.redis.(*redis.Client) } //nolint:forcetypeassert // it is that of New

func inspector(q *Queue) *asynq.Inspector { return asynq.NewInspectorFromRedisClient(client(q)) }

// DeliveryID returns the asynq ID of a task's n-th delivery.
func DeliveryID(id string, n int) string {
	if n == 0 {
		return id
	}
	return id + ".r" + strconv.Itoa(n)
}

// DeliveryNumber is the inverse of DeliveryID for a known task.
func DeliveryNumber(id, delivery string) (int, error) {
	rest, ok := strings.CutPrefix(delivery, id)
	if ok && rest == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(rest, ".r"))
	if !ok || err != nil {
		return 0, fmt.Errorf("delivery %q is not one of task %s", delivery, id)
	}
	return n, nil
}

const (
	// deliveriesAtOnce is how many deliveries Deliver makes between two looks at the store.
	deliveriesAtOnce = 100
	// activeMost is more than the workers of a pool have of one class.
	activeMost = 10_000
)

// Deliver enqueues the tasks that may start now and have no delivery yet. Call it after a step that lets tasks start;
// the leader calls it all the time. It is safe to call it from many processes. One delivery that fails holds up no
// others of its batch, unless Redis does not answer.
func (q *Queue) Deliver(ctx context.Context) error {
	for {
		ready, err := q.store.Ready(ctx, deliveriesAtOnce)
		if err != nil {
			return err
		}
		if len(ready) == 0 {
			return nil
		}
		// A new client makes the queues known to asynq, in case Redis has lost that.
		put := q.newClient()
		var made []store.Delivery
		for _, d := range ready {
			there, failed := q.deliver(ctx, put, d)
			if failed != nil && q.redis.Ping(ctx).Err() != nil {
				return failed // the store names all of them again
			}
			err = errors.Join(err, failed)
			if there {
				made = append(made, d)
			}
		}
		err = errors.Join(err, q.store.Delivered(ctx, made...))
		for _, d := range slices.Backward(ready) {
			if d.Called {
				err = errors.Join(err, q.ToFront(ctx, d.Queue, DeliveryID(d.ID, d.Number)))
			}
		}
		if err != nil || len(ready) < deliveriesAtOnce {
			return err
		}
	}
}

// deliver enqueues a delivery, and reports whether it is in its queue. If it is over, because an operator archived it,
// the task gets another one.
func (q *Queue) deliver(ctx context.Context, put enqueue, d store.Delivery) (there bool, _ error) {
	err := put(ctx, d.ID, d.Queue, d.Number)
	if !errors.Is(err, asynq.ErrTaskIDConflict) {
		return err == nil, err
	}
	info, err := inspector(q).GetTaskInfo(d.Queue, DeliveryID(d.ID, d.Number))
	if err != nil {
		return false, nil //nolint:nilerr // it was there until now
	}
	if info.State == asynq.TaskStateArchived || info.State == asynq.TaskStateCompleted {
		return false, q.Replace(ctx, d.ID, d.Number)
	}
	return true, nil
}

// clockMargin is how far this process' clock may be ahead of Redis', so that it can tell whether a lease of asynq has
// ended. Workers write leases by their own clocks and renew them 25 s before the end.
const clockMargin = 5 * time.Second

// ReplaceLost gives another delivery to tasks that wait although a worker has theirs by asynq's account: the worker has
// died, or Redis' reply to it was lost. asynq sees that when its lease of 30 s has ended, and waits one to two minutes.
// A queue that cannot be read does not hold up the others. A process whose clock is ahead leaves all of them to asynq:
// to it the leases of live workers have ended, too.
func (q *Queue) ReplaceLost(ctx context.Context) error {
	clock, err := q.redis.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read redis' clock: %w", err)
	}
	if time.Since(clock) > clockMargin {
		return nil
	}
	used, err := inspector(q).Queues()
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	for _, queue := range used {
		if _, class := store.CutQueue(queue); slices.Contains(tasks.Classes, class) {
			err = errors.Join(err, q.replaceLost(ctx, queue))
		}
	}
	return err
}

func (q *Queue) replaceLost(ctx context.Context, queue string) error {
	active, err := inspector(q).ListActiveTasks(queue, asynq.PageSize(activeMost))
	if err != nil {
		return fmt.Errorf("list deliveries of %s: %w", queue, err)
	}
	for _, d := range active {
		id := string(d.Payload)
		n, err := DeliveryNumber(id, d.ID)
		if err != nil || !d.IsOrphaned {
			continue
		}
		if err := q.Replace(ctx, id, n); err != nil {
			return err
		}
	}
	return nil
}

// Replace gives another delivery to a task that waits and has this one.
func (q *Queue) Replace(ctx context.Context, id string, n int) error {
	rec, err := q.store.Get(ctx, id)
	if err == nil && rec.State == store.Waiting && rec.Delivery == n {
		_, err = q.store.Requeue(ctx, id, n, rec.Fence, false)
	}
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Enqueue puts a task's n-th delivery into a queue. It does nothing if asynq knows the delivery.
func (q *Queue) Enqueue(ctx context.Context, id, queue string, n int) error {
	if err := q.enqueue(ctx, id, queue, n); !errors.Is(err, asynq.ErrTaskIDConflict) {
		return err
	}
	return nil
}

// newClient returns the function of a new client of asynq.
func (q *Queue) newClient() enqueue {
	c := asynq.NewClientFromRedisClient(client(q))
	return func(ctx context.Context, id, queue string, n int) error {
		// asynq archives a task that has used up its retries, without calling IsFailure. So the limit is out of reach,
		// and the record counts attempts.
		_, err := c.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(id)), asynq.TaskID(DeliveryID(id, n)),
			asynq.Queue(queue), asynq.MaxRetry(math.MaxInt32), asynq.Timeout(q.timeout), asynq.Retention(retention))
		if err != nil {
			return fmt.Errorf("enqueue task %s: %w", id, err)
		}
		return nil
	}
}

// Move gives a waiting task to another pool. It returns [store.ErrStale] if the task has another delivery or no longer
// waits.
func (q *Queue) Move(ctx context.Context, rec store.Record, pool string) error {
	if err := q.store.Move(ctx, rec, pool); err != nil {
		return err
	}
	// The queue that it leaves may have no workers. A worker that has the delivery finds it stale.
	_ = inspector(q).DeleteTask(rec.Queue(), DeliveryID(rec.ID, rec.Delivery))
	return nil
}

// Pause makes asynq give out no deliveries of a class in any pool.
func (q *Queue) Pause(ctx context.Context, class string) error {
	return q.each(ctx, class, inspector(q).PauseQueue)
}

// Resume undoes Pause.
func (q *Queue) Resume(ctx context.Context, class string) error {
	return q.each(ctx, class, inspector(q).UnpauseQueue)
}

// each calls do for the queues of a class in all pools. It ignores that a queue is paused, or is not, already.
func (q *Queue) each(ctx context.Context, class string, do func(queue string) error) error {
	queues, err := inspector(q).Queues()
	if err != nil {
		return fmt.Errorf("list queues: %w", err)
	}
	seen, err := q.store.Workers.List(ctx)
	if err != nil {
		return err
	}
	for _, w := range seen { // asynq knows a queue from its first task on
		queues = append(queues, store.QueueOf(w.Pool, class))
	}
	for _, queue := range append(queues, class) {
		if _, of := store.CutQueue(queue); of == class {
			_ = do(queue)
		}
	}
	return nil
}

// Pauses makes asynq pause those queues of a pool whose class is paused. Workers call it before they take deliveries,
// because a queue may be new. Only Resume ends a pause: what this has read may be old by then.
func (q *Queue) Pauses(ctx context.Context, pool string) error {
	paused, err := q.store.Paused.All(ctx)
	if err != nil {
		return err
	}
	for class := range paused {
		_ = inspector(q).PauseQueue(store.QueueOf(pool, class)) // it fails if that is so already
	}
	return nil
}

// Redis keys of asynq v0.26, for data that its API returns one at a time or not at all. TestLayoutOfAsynq checks them
// against asynq.
func asynqTask(queue, delivery string) string { return "asynq:{" + queue + "}:t:" + delivery }

func asynqPending(queue string) string { return "asynq:{" + queue + "}:pending" }

// ToFront makes pending deliveries the next ones of their queue, in this order. It does nothing to deliveries that are
// not pending.
func (q *Queue) ToFront(ctx context.Context, queue string, deliveries ...string) error {
	// asynq takes from the right end and adds at the left. Search for a delivery from the end where it is, and not for
	// one that is not pending: that would read the whole list.
	const move = `local near, n = {}, #ARGV - 1
for _, id in ipairs(redis.call("LRANGE", KEYS[1], -2 * n, -1)) do near[id] = true end
for i = n, 1, -1 do
  local pending = redis.call("HGET", ARGV[n + 1] .. ARGV[i], "state") == "pending"
  if pending and redis.call("LREM", KEYS[1], near[ARGV[i]] and -1 or 1, ARGV[i]) == 1 then redis.call("RPUSH", KEYS[1], ARGV[i]) end
end
return 1`
	args := make([]any, 0, len(deliveries)+1)
	for _, d := range deliveries {
		args = append(args, d)
	}
	args = append(args, asynqTask(queue, ""))
	if err := q.redis.Eval(ctx, move, []string{asynqPending(queue)}, args...).Err(); err != nil {
		return fmt.Errorf("put deliveries %s first: %w", strings.Join(deliveries, ", "), err)
	}
	return nil
}

// asynq polls: a server asks for the next delivery again and again. The workers of a pool share the polls, so that a
// large fleet asks no more often than a small one, and one of them soon has what is new.
const (
	pollEvery    = 50 * time.Millisecond // of a queue, by any worker of its pool, on average
	pollMost     = 100 * time.Millisecond
	pollLeast    = 3 * time.Second // by each worker, at least
	forwardEvery = time.Second / 3 // likewise, for the deliveries that wait for their time
)

// PollInterval returns how often each of the workers of a pool polls a queue.
func PollInterval(workers int) time.Duration {
	return min(max(pollEvery*time.Duration(workers), pollMost), pollLeast)
}

// ServerConfig says how a worker serves a queue.
type ServerConfig struct {
	Queue       string
	Concurrency int           // the number of deliveries that it processes at once
	Workers     int           // in its pool
	Shutdown    time.Duration // how long Shutdown waits for deliveries under way
	Log         *slog.Logger
}

// NewServer returns an asynq server for a queue.
func NewServer(q *Queue, cfg ServerConfig) *asynq.Server {
	return asynq.NewServerFromRedisClient(client(q), asynq.Config{
		Concurrency: cfg.Concurrency, Queues: map[string]int{cfg.Queue: 1},
		TaskCheckInterval:        PollInterval(cfg.Workers),
		DelayedTaskCheckInterval: max(forwardEvery*time.Duration(cfg.Workers), time.Second),
		JanitorInterval:          time.Minute, ShutdownTimeout: cfg.Shutdown,
		IsFailure: func(err error) bool {
			_, waits := errors.AsType[*tasks.ErrLater](err)
			return !waits
		},
		RetryDelayFunc: retryDelay, Logger: asynqLog{cfg.Log},
		LogLevel: asynq.ErrorLevel, // a delivery that is revoked is a warning to asynq
	})
}

// retryDelay returns the wait that an ErrLater asks for, and a backoff for any other error, which means that
// infrastructure such as Redis failed.
func retryDelay(n int, err error, _ *asynq.Task) time.Duration {
	if l, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return max(0, time.Until(l.At))
	}
	return Backoff(n)
}

// Backoff returns the wait after n failures: 2 s, doubling up to 5 min.
func Backoff(n int) time.Duration { return min(2*time.Second<<min(max(n, 0), 8), 5*time.Minute) }

// poolQueues returns those of asynq's queues that belong to other pools than the default one, sorted by pool, and then
// by class as Classes.
func poolQueues(queues []string) (list []string) {
	for _, queue := range queues {
		if pool, class := store.CutQueue(queue); pool != "" && slices.Contains(tasks.Classes, class) {
			list = append(list, queue)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		poolA, classA := store.CutQueue(a)
		poolB, classB := store.CutQueue(b)
		return cmp.Or(strings.Compare(poolA, poolB),
			cmp.Compare(slices.Index(tasks.Classes, classA), slices.Index(tasks.Classes, classB)))
	})
	return list
}
