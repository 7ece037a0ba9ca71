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

// Later returns an ErrLater that is due after d.
func Later(d time.Duration, why string) *ErrLater {
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

// Enqueue puts a delivery into the queue of its class. It succeeds if the delivery is already there.
func (q *Queue) Enqueue(ctx context.Context, id, class string, delivery int, at time.Time) error {
	opts := []asynq.Option{
		asynq.TaskID(DeliveryID(id, delivery)), asynq.Queue(class), asynq.Retention(retention), asynq.Timeout(q.timeout),
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

// Wake makes a scheduled delivery due now. It does nothing if the delivery is not scheduled.
func (q *Queue) Wake(id, class string, delivery int) {
	_ = q.inspector.RunTask(class, DeliveryID(id, delivery))
}

const asynqQueues = "asynq:queues"

// Where asynq v0.26 keeps what its own API gives one by one, or not at all. TestLayoutOfAsynq holds this to asynq itself.
func asynqTask(class, delivery string) string { return "asynq:{" + class + "}:t:" + delivery }

func asynqPending(class string) string { return "asynq:{" + class + "}:pending" }

// Delivered returns, in one round trip, whether asynq has each delivery, and whether that delivery can still reach a worker.
func (q *Queue) Delivered(ctx context.Context, recs []store.LiveRecord) (present, alive []bool, err error) {
	states := make([]*redis.StringCmd, len(recs))
	_, err = q.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, rec := range recs {
			states[i] = p.HGet(ctx, asynqTask(rec.Class, DeliveryID(rec.ID, rec.Delivery)), "state")
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

// Register announces all queues to asynq. An asynq client does so only once per queue, and not again after Redis has lost its data.
func (q *Queue) Register(ctx context.Context) error {
	if err := q.redis.SAdd(ctx, asynqQueues, Classes).Err(); err != nil {
		return fmt.Errorf("register queues: %w", err)
	}
	return nil
}

// ToFront makes a pending delivery the next of its class. It does nothing to a delivery that is not pending.
func (q *Queue) ToFront(ctx context.Context, id, class string, delivery int) error {
	// asynq takes from the right end, and has just put it in at the left.
	const move = `if redis.call("LREM", KEYS[1], 1, ARGV[1]) == 1 then redis.call("RPUSH", KEYS[1], ARGV[1]) end return 1`
	if err := q.redis.Eval(ctx, move, []string{asynqPending(class)}, DeliveryID(id, delivery)).Err(); err != nil {
		return fmt.Errorf("put task %s first: %w", id, err)
	}
	return nil
}

// Server returns the asynq server of one class.
func (q *Queue) Server(class string, concurrency int, shutdown time.Duration, log *slog.Logger) *asynq.Server {
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
	return Backoff(n)
}

// Backoff doubles from 2 s up to 5 min.
func Backoff(n int) time.Duration { return min(2*time.Second<<min(max(n, 0), 8), 5*time.Minute) }

// asynqLog lets asynq speak through slog.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(args ...any) { l.log.Debug("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Info(args ...any)  { l.log.Info("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Warn(args ...any)  { l.log.Warn("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Error(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }
func (l asynqLog) Fatal(args ...any) { l.log.Error("asynq", "says", fmt.Sprint(args...)) }

// Depth is how full the queue of a class is. What is counted are deliveries, so it may differ for a moment from what the tasks say.
type Depth struct {
	Class   string  `json:"class"`
	Waiting int     `json:"waiting"`             // for a worker to take them
	Oldest  float64 `json:"oldest_wait_seconds"` // how long the first of these has waited
	Later   int     `json:"later"`               // wait for their thread, a slot or a certain time
	Running int     `json:"running"`
}

// Depths tells of every class, the most urgent first. It costs the same however much waits.
func (d *Desk) Depths(ctx context.Context) ([]Depth, error) { return d.queue.depths(ctx) }

func (q *Queue) depths(ctx context.Context) ([]Depth, error) {
	used, err := q.inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	list := make([]Depth, 0, len(Classes))
	for _, class := range Classes {
		info := &asynq.QueueInfo{}
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("read queue %s: %w", class, err) // asynq takes no context
		}
		if slices.Contains(used, class) { // the others do not exist until something is put in
			if info, err = q.inspector.GetQueueInfo(class); err != nil {
				return nil, fmt.Errorf("read queue %s: %w", class, err)
			}
		}
		list = append(list, Depth{
			Class: class, Waiting: info.Pending, Oldest: info.Latency.Seconds(), Later: info.Scheduled + info.Retry, Running: info.Active,
		})
	}
	return list, nil
}

// redelivery is the form of a delivery's ID that is not the task's first (deliveryID).
var redelivery = regexp.MustCompile(`^(.+)\.r[1-9][0-9]*$`)

// delivered finds the task of a delivery. A task's own ID may end as a redelivery's does, so it is looked for first. With an error comes
// the ID that was looked for last.
func delivered(ctx context.Context, s *store.Store, delivery string) (id string, err error) {
	id = delivery
	_, err = s.Get(ctx, id)
	if again := redelivery.FindStringSubmatch(delivery); errors.Is(err, store.ErrNotFound) && again != nil {
		id = again[1]
		_, err = s.Get(ctx, id)
	}
	return id, err
}

// Delivered tells which task a delivery belongs to, by the delivery's ID in the queue; ErrNotFound when there is none, or no more.
func (d *Desk) Delivered(ctx context.Context, delivery string) (id string, err error) {
	if id, err = delivered(ctx, d.store, delivery); err != nil {
		return "", d.notFound(id, err)
	}
	return id, nil
}

// cancelChannel is where asynq tells its servers of a cancel: from its command line, its Inspector, or an asynqmon that is not ours, which
// asks the desk.
const cancelChannel = "asynq:cancel"

// Cancels yields the IDs of deliveries that are cancelled through asynq, until ctx ends. One that is told while Redis is away is lost,
// for asynq as well as for us.
func (q *Queue) Cancels(ctx context.Context, heard func(delivery string)) {
	sub := q.redis.Subscribe(ctx, cancelChannel)
	defer sub.Close()
	messages := sub.Channel()
	for {
		select {
		case m, open := <-messages:
			if !open { // the client was closed
				return
			}
			heard(m.Payload)
		case <-ctx.Done():
			return
		}
	}
}
