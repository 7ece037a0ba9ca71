package tasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynq is the engine that brings deliveries to workers, and no more: its lease, its cancel and its retries are not safe for
// children that live for hours (docs/concurrency.md). A delivery's payload is a task's ID; what the task is, whether the
// delivery is still the valid one and who may run it is in the store.

const (
	taskType = "errand"
	// retention keeps finished deliveries for operators to look at, and their IDs taken.
	retention = 7 * 24 * time.Hour
	// timeoutMargin keeps asynq's own deadline out of play: it gives a delivery back while the child still runs.
	timeoutMargin = 10 * time.Minute
	noLimit       = 365 * 24 * time.Hour
	// Idle workers look this often, give or take half. Where somebody waits, a task starts within about 50 ms, most of which is the start of
	// processes.
	pollInterval      = 100 * time.Millisecond
	pollWhereOneWaits = 15 * time.Millisecond
	// delayedInterval is how often deliveries that waited are moved back; asynq counts in whole seconds.
	delayedInterval = time.Second
)

// ErrLater is the one way in which a task waits: for its thread, for a slot, for a better time. It is not a failure.
type ErrLater struct {
	At   time.Time
	Why  string // a clause for people, without amounts, names of machines or what another service has said
	Tell string // names the reason to those who follow the task: they are told Why when the name changes. Empty: only its status has Why
}

func (e *ErrLater) Error() string {
	return fmt.Sprintf("later, at %s: %s", e.At.UTC().Format(time.RFC3339), e.Why)
}

// later waits for d, and lets that be told.
func later(d time.Duration, why string) *ErrLater {
	return &ErrLater{At: time.Now().Add(d), Why: why, Tell: why}
}

// Queue is our use of asynq. Safe for concurrent use.
type Queue struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	redis     redis.UniversalClient
	timeout   time.Duration
}

// NewQueue uses a Redis client that it does not close. limit is the longest a run may last; 0 means that there is none.
func NewQueue(r redis.UniversalClient, limit time.Duration) *Queue {
	if limit <= 0 {
		limit = noLimit // asynq would take 0 for its default of 30 min
	}
	return &Queue{
		client: asynq.NewClientFromRedisClient(r), inspector: asynq.NewInspectorFromRedisClient(r), redis: r,
		timeout: limit + timeoutMargin,
	}
}

// deliveryID is the asynq ID of a task's n-th delivery.
func deliveryID(id string, n int) string {
	if n == 0 {
		return id
	}
	return id + ".r" + strconv.Itoa(n)
}

// deliveryNumber is the inverse of deliveryID for a known task.
func deliveryNumber(id, delivery string) (int, error) {
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

// enqueue puts a delivery into the queue of its class. That it is there already is success.
func (q *Queue) enqueue(ctx context.Context, id, class string, delivery int, at time.Time) error {
	opts := []asynq.Option{
		asynq.TaskID(deliveryID(id, delivery)), asynq.Queue(class), asynq.Retention(retention), asynq.Timeout(q.timeout),
		// asynq archives a task that has used up its retries before it asks whether the error was a failure at all, so the
		// number is out of reach and attempts are counted in the record.
		asynq.MaxRetry(math.MaxInt32),
	}
	if !at.IsZero() {
		opts = append(opts, asynq.ProcessAt(at))
	}
	_, err := q.client.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(id)), opts...)
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue task %s: %w", id, err)
	}
	return nil
}

// wake lets a waiting delivery be taken now instead of at its time; that it is not waiting is fine.
func (q *Queue) wake(id, class string, delivery int) {
	_ = q.inspector.RunTask(class, deliveryID(id, delivery))
}

const asynqQueues = "asynq:queues"

// Where asynq v0.26 keeps what its own API gives one by one, or not at all. TestLayoutOfAsynq holds this to asynq itself.
func asynqTask(class, delivery string) string { return "asynq:{" + class + "}:t:" + delivery }

func asynqPending(class string) string { return "asynq:{" + class + "}:pending" }

// delivered tells, in one round trip, what asynq has of deliveries: present, and if so whether it can still reach a worker.
func (q *Queue) delivered(ctx context.Context, recs []store.LiveRecord) (present, alive []bool, err error) {
	states := make([]*redis.StringCmd, len(recs))
	_, err = q.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, rec := range recs {
			states[i] = p.HGet(ctx, asynqTask(rec.Class, deliveryID(rec.ID, rec.Delivery)), "state")
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
		alive[i] = present[i] && state.Val() != asynq.TaskStateCompleted.String() && state.Val() != asynq.TaskStateArchived.String()
	}
	return present, alive, nil
}

// register tells asynq of all queues. Its clients do so once, the first time that they put something in, and not again after Redis has forgotten.
func (q *Queue) register(ctx context.Context) error {
	if err := q.redis.SAdd(ctx, asynqQueues, Classes).Err(); err != nil {
		return fmt.Errorf("register queues: %w", err)
	}
	return nil
}

// toFront lets a delivery that is pending be the next of its class. Of any other nothing changes.
func (q *Queue) toFront(ctx context.Context, id, class string, delivery int) error {
	// asynq takes from the right end, and has just put it in at the left.
	const move = `if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[1], ARGV[1]) end return 1`
	if err := q.redis.Eval(ctx, move, []string{asynqPending(class)}, deliveryID(id, delivery)).Err(); err != nil {
		return fmt.Errorf("put task %s first: %w", id, err)
	}
	return nil
}

// server makes the asynq server of one class.
func (q *Queue) server(class string, concurrency int, shutdown time.Duration, log *slog.Logger) *asynq.Server {
	poll := pollInterval
	if class == Interactive {
		poll = pollWhereOneWaits
	}
	return asynq.NewServerFromRedisClient(q.redis, asynq.Config{
		Concurrency: concurrency, Queues: map[string]int{class: 1},
		TaskCheckInterval: poll, DelayedTaskCheckInterval: delayedInterval, ShutdownTimeout: shutdown,
		IsFailure: func(err error) bool {
			_, waits := errors.AsType[*ErrLater](err)
			return !waits
		},
		RetryDelayFunc: retryDelay,
		Logger:         asynqLog{log}, LogLevel: asynq.WarnLevel,
	})
}

// retryDelay is the wait an ErrLater asks for. Anything else is infrastructure that did not work, such as Redis itself.
func retryDelay(n int, err error, _ *asynq.Task) time.Duration {
	if l, ok := errors.AsType[*ErrLater](err); ok {
		return max(0, time.Until(l.At))
	}
	return backoff(n)
}

// backoff doubles from 2 s up to 5 min.
func backoff(n int) time.Duration { return min(2*time.Second<<min(max(n, 0), 8), 5*time.Minute) }

// asynqLog lets asynq speak through slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }
