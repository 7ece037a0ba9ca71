package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"
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
	// pollInterval is how long asynq waits after it found nothing, ± 50 %. The worker's hook holds its next request
	// back until there is something to find.
	pollInterval = 2 * time.Millisecond
	// delayedInterval is how often asynq moves scheduled deliveries to the pending list. asynq counts in whole
	// seconds.
	delayedInterval = time.Second
)

// ErrLater postpones a task: until its thread is free, until there is a slot, or until a given time. All waiting uses
// it. It is not a failure.
type ErrLater struct {
	At   time.Time
	Why  string // a clause for people, without amounts of money, host names or texts of other services
	Tell string // identifies the reason: followers see Why again when it changes. Empty: only the status has Why
}

func (e *ErrLater) Error() string {
	return fmt.Sprintf("later, at %s: %s", e.At.UTC().Format(time.RFC3339), e.Why)
}

// Later returns an ErrLater that is due after d and whose reason is shown to followers of the task.
func Later(d time.Duration, why string) *ErrLater {
	return &ErrLater{At: time.Now().Add(d), Why: why, Tell: why}
}

// Queue wraps asynq. It is safe for concurrent use.
type Queue struct {
	store     *store.Store
	inspector *asynq.Inspector
	redis     *redis.Client
	timeout   time.Duration
}

// NewQueue returns a queue on the Redis client of a store. It closes neither. limit is the longest duration of a run; 0
// means no limit.
func NewQueue(s *store.Store, r *redis.Client, limit time.Duration) *Queue {
	if limit <= 0 {
		limit = noLimit // for asynq, 0 is its default of 30 min
	}
	return &Queue{store: s, inspector: asynq.NewInspectorFromRedisClient(r), redis: r, timeout: limit + timeoutMargin}
}

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

// Enqueue puts a delivery into a queue. It succeeds if the delivery is already there.
func (q *Queue) Enqueue(ctx context.Context, id, queue string, delivery int, at time.Time) error {
	return q.store.Enqueue(ctx, queue, DeliveryID(id, delivery), q.message(id, queue, delivery), at)
}

// Move gives a waiting task to another pool, whose workers can take it at the given time. It returns [store.ErrStale]
// if the task has another delivery or no longer waits.
func (q *Queue) Move(ctx context.Context, rec store.Record, pool string, at time.Time) error {
	return q.store.Pools.Move(ctx, rec, store.Move{
		Pool: pool, Last: DeliveryID(rec.ID, rec.Delivery), Next: DeliveryID(rec.ID, rec.Delivery+1),
		Message: q.message(rec.ID, store.QueueOf(pool, rec.Class), rec.Delivery+1), At: at,
	})
}

// The field numbers of asynq's message, from its asynq.proto.
const (
	messageType      protowire.Number = 1
	messagePayload   protowire.Number = 2
	messageID        protowire.Number = 3
	messageQueue     protowire.Number = 4
	messageRetry     protowire.Number = 5
	messageTimeout   protowire.Number = 8
	messageRetention protowire.Number = 12
)

// message returns what asynq stores for a delivery. Submit stores it together with the task, so that a task never
// exists without a delivery and an event costs one round trip. TestQueueOfAsynq compares it with asynq's own.
func (q *Queue) message(id, queue string, delivery int) []byte {
	var b []byte
	text := func(n protowire.Number, s string) {
		b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	number := func(n protowire.Number, v uint64) {
		b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
	}
	text(messageType, taskType)
	text(messagePayload, id)
	text(messageID, DeliveryID(id, delivery))
	text(messageQueue, queue)
	// asynq archives a task that has used up its retries, without calling IsFailure. So the limit is out of reach, and
	// the record counts attempts.
	number(messageRetry, math.MaxInt32)
	number(messageTimeout, uint64(q.timeout/time.Second)) //nolint:gosec // a duration of the configuration, above 0
	number(messageRetention, uint64(retention/time.Second))
	return b
}

// Wake makes a scheduled delivery due now. It does nothing if the delivery is not scheduled.
func (q *Queue) Wake(ctx context.Context, id, queue string, delivery int) {
	if q.inspector.RunTask(queue, DeliveryID(id, delivery)) == nil {
		_ = q.store.Announce(ctx, queue) // workers look without it, a little later
	}
}

// Redis keys of asynq v0.26, for data that its API returns one at a time or not at all. TestLayoutOfAsynq checks them
// against asynq.
func asynqTask(queue, delivery string) string { return "asynq:{" + queue + "}:t:" + delivery }

func asynqPending(queue string) string { return "asynq:{" + queue + "}:pending" }

// Delivered returns, in one round trip, whether asynq has each delivery, and whether that delivery can still reach a
// worker.
func (q *Queue) Delivered(ctx context.Context, recs []store.LiveRecord) (present, alive []bool, err error) {
	states := make([]*redis.StringCmd, len(recs))
	_, err = q.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, rec := range recs {
			states[i] = p.HGet(ctx, asynqTask(rec.Queue(), DeliveryID(rec.ID, rec.Delivery)), "state")
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, fmt.Errorf("look for deliveries: %w", err)
	}
	present, alive = make([]bool, len(recs)), make([]bool, len(recs))
	for i, state := range states {
		if err := state.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, nil, fmt.Errorf("look for delivery of task %s: %w", recs[i].ID, err)
		}
		present[i] = state.Val() != ""
		alive[i] = present[i] && state.Val() != asynq.TaskStateCompleted.String() &&
			state.Val() != asynq.TaskStateArchived.String()
	}
	return present, alive, nil
}

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

// Server returns an asynq server for all classes in a pool, the most urgent first. concurrency is the number of
// deliveries that it processes at once. Its requests to Redis pass the hook.
func (q *Queue) Server(
	pool string, concurrency int, hook redis.Hook, shutdown time.Duration, log *slog.Logger,
) *asynq.Server {
	o := q.redis.Options()
	client := q.redis.WithTimeout(o.ReadTimeout) // a copy with the same connections: hooks are for whole clients
	client.AddHook(hook)
	priorities := map[string]int{}
	for i, class := range Classes {
		priorities[store.QueueOf(pool, class)] = len(Classes) - i
	}
	return asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency: concurrency, Queues: priorities, StrictPriority: true,
		TaskCheckInterval: pollInterval, DelayedTaskCheckInterval: delayedInterval, ShutdownTimeout: shutdown,
		IsFailure: func(err error) bool {
			_, waits := errors.AsType[*ErrLater](err)
			return !waits
		},
		RetryDelayFunc: retryDelay,
		Logger:         asynqLog{log}, LogLevel: asynq.WarnLevel,
	})
}

// Request is a request of an asynq server that [Queue.Server]'s hook may want to answer itself.
type Request int

// The requests.
const (
	Other   Request = iota
	Dequeue         // take the next delivery of a queue
	Forward         // make the due deliveries of a queue pending
)

// RequestOf returns the kind of an asynq server's command, and the queue. Unknown commands are Other.
func RequestOf(cmd redis.Cmder) (what Request, queue string) {
	args := cmd.Args()
	if len(args) < 4 || cmd.Name() != "evalsha" && cmd.Name() != "eval" {
		return Other, ""
	}
	n, isInt := args[2].(int)
	first, _ := args[3].(string)
	queue, key, _ := strings.Cut(strings.TrimPrefix(first, "asynq:{"), "}:")
	switch {
	case isInt && n == 4 && key == "pending":
		return Dequeue, queue
	case isInt && n == 2 && (key == "scheduled" || key == "retry"):
		return Forward, queue
	default:
		return Other, ""
	}
}

// retryDelay returns the wait that an ErrLater asks for, and a backoff for any other error, which means that
// infrastructure such as Redis failed.
func retryDelay(n int, err error, _ *asynq.Task) time.Duration {
	if l, ok := errors.AsType[*ErrLater](err); ok {
		return max(0, time.Until(l.At))
	}
	return Backoff(n)
}

// Backoff returns the wait after n failures: 2 s, doubling up to 5 min.
func Backoff(n int) time.Duration { return min(2*time.Second<<min(max(n, 0), 8), 5*time.Minute) }

// AsynqLogger returns a logger for asynq that writes its messages to log.
func AsynqLogger(log *slog.Logger) asynq.Logger { return asynqLog{log} }

// asynqLog writes asynq's log messages to slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }

// Depth is the length of the queue of a class in a pool. It counts deliveries, so it can differ for a moment from what
// the tasks' states say.
type Depth struct {
	Pool    string  `json:"pool,omitempty"` // empty: the default one
	Class   string  `json:"class"`
	Waiting int     `json:"waiting"`             // deliveries that a worker can take now
	Oldest  float64 `json:"oldest_wait_seconds"` // age of the oldest of these
	Later   int     `json:"later"`               // wait for their thread, a slot or a given time
	Running int     `json:"running"`

	Paused *store.Halt `json:"paused,omitempty"` // nil: workers take its tasks
}

// Depths returns the queue depth of every class in the default pool, the most urgent first, and then of the other pools
// with deliveries. Its cost does not depend on the number of waiting tasks.
func (d *Desk) Depths(ctx context.Context) ([]Depth, error) {
	inspector := d.queue.inspector
	used, err := inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	queues := slices.Concat(slices.Clone(Classes), poolQueues(used))
	paused, err := d.store.Halts.Paused(ctx, queues...)
	if err != nil {
		return nil, err
	}
	list := make([]Depth, 0, len(queues))
	for _, queue := range queues {
		info := &asynq.QueueInfo{}
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("read queue %s: %w", queue, err) // asynq's inspector takes no context
		}
		if slices.Contains(used, queue) { // asynq creates a queue with its first task
			if info, err = inspector.GetQueueInfo(queue); err != nil {
				return nil, fmt.Errorf("read queue %s: %w", queue, err)
			}
		}
		depth := Depth{
			Waiting: info.Pending, Oldest: info.Latency.Seconds(), Later: info.Scheduled + info.Retry,
			Running: info.Active,
		}
		if depth.Pool, depth.Class = store.CutQueue(queue); depth.Pool != "" &&
			depth.Waiting+depth.Later+depth.Running == 0 {
			continue
		}
		if h, ok := paused[queue]; ok {
			depth.Paused = &h
		}
		list = append(list, depth)
	}
	return list, nil
}

// redelivery matches the IDs of all deliveries of a task but the first; see DeliveryID.
var redelivery = regexp.MustCompile(`^(.+)\.r[1-9][0-9]*$`)

// Delivered returns the ID of the task that a delivery belongs to, or ErrNotFound. delivery is its ID in the queue. A
// task's own ID may end like a redelivery's, so Delivered looks for that task first.
func (d *Desk) Delivered(ctx context.Context, delivery string) (id string, err error) {
	id = delivery
	_, err = d.store.Get(ctx, id)
	if again := redelivery.FindStringSubmatch(delivery); errors.Is(err, store.ErrNotFound) && again != nil {
		id = again[1]
		_, err = d.store.Get(ctx, id)
	}
	if err != nil {
		return "", d.notFound(id, err)
	}
	return id, nil
}
