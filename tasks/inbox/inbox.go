// Package inbox keeps what arrives until it is interpreted, and what is to be sent until it has arrived.
//
// A front door stores an event as it came, answers its sender, and only then finds out what it means: the services that
// it has to ask for that may be slow or fail, and most senders do not send an event again. Workers note in the same way
// what front doors are to tell other programs. An inbox is a queue of asynq. asynq tries an event again for about a
// day, and keeps in its archive what was given up.
//
// It promises that an event which was accepted is interpreted at least once, by any front door, also after a crash; and
// that an event with the ID of another one is not interpreted beside it or within an hour after it, or for as long as
// its source wants. After that its handler finds what the first one has made. An event that was given up is replaced if
// it is sent again; several that are sent at the same moment may then be interpreted one after the other. It does not
// promise an order.
package inbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
)

// The queues of the inboxes. No pool's queue has such a name: they end with a class.
const (
	Incoming = "inbox"
	Outgoing = "webhooks"
)

const (
	taskType = "event"

	// acceptLimit keeps the promise of an answer within 3 s while Redis hangs.
	acceptLimit = 2500 * time.Millisecond
	// limit bounds one attempt. asynq gives an event to somebody else after twice that time.
	limit = 2 * time.Minute
	// maxRetries are about a day of attempts, at the pauses of [queue.Backoff].
	maxRetries = 290
	// kept is how long asynq remembers an event after it was interpreted and cannot be found any more.
	kept = time.Hour
	// checkInterval is how long asynq waits after it found nothing, ± 50 %.
	checkInterval = 50 * time.Millisecond
	// shutdown is how long the end of a front door waits for events under way.
	shutdown = 15 * time.Second
)

// The headers of a stored event.
const (
	sourceHeader = "source"
	kindHeader   = "kind"
	idHeader     = "id"
)

// Config is what New needs. Queue, AtOnce and Redis are required.
type Config struct {
	Queue     string
	AtOnce    int // how many events a front door interprets at the same time. Mostly it waits for services
	Redis     *redis.Client
	Accepting *redis.Client   // for Accept; nil: Redis
	Redactor  *agent.Redactor // removes secrets from what is stored; nil: nothing is removed
	Log       *slog.Logger    // nil: discard

	// Replicate waits until enough replicas of Redis have what was written before; nil: an event is accepted as soon as
	// the master has it.
	Replicate func(context.Context) error
}

// Inbox implements [intake.Inbox]. It is safe for concurrent use, except that Handle must be called before Serve.
type Inbox struct {
	cfg       Config
	client    atomic.Pointer[asynq.Client]
	inspector *asynq.Inspector
	handlers  map[string]intake.Handler
}

var _ intake.Inbox = (*Inbox)(nil)

// New returns an inbox. It closes no Redis client.
func New(cfg Config) *Inbox {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Accepting = cmp.Or(cfg.Accepting, cfg.Redis)
	b := &Inbox{
		cfg: cfg, inspector: asynq.NewInspectorFromRedisClient(cfg.Redis), handlers: map[string]intake.Handler{},
	}
	b.renew()
	return b
}

// renew replaces asynq's client, which notes the name of a queue with its first event only, and not again when Redis
// has lost all its data.
func (b *Inbox) renew() { b.client.Store(asynq.NewClientFromRedisClient(b.cfg.Accepting)) }

// Handle sets the handler for the events of a source.
func (b *Inbox) Handle(source string, h intake.Handler) { b.handlers[source] = h }

// Accept stores an event without the secrets in it.
func (b *Inbox) Accept(ctx context.Context, e intake.Event) error {
	ctx, cancel := context.WithTimeout(ctx, acceptLimit)
	defer cancel()
	id := e.Source + "." + cmp.Or(e.ID, rand.Text())
	err := b.store(ctx, id, e)
	if errors.Is(err, asynq.ErrQueueNotFound) {
		b.renew()
		err = b.store(ctx, id, e)
	}
	if err != nil {
		return fmt.Errorf("store event of %s: %w", e.Source, err)
	}
	return nil
}

func (b *Inbox) store(ctx context.Context, id string, e intake.Event) error {
	err := b.enqueue(ctx, id, e)
	if errors.Is(err, asynq.ErrTaskIDConflict) && !e.Found {
		if err := b.forget(ctx, id); err != nil {
			return err
		}
		err = b.enqueue(ctx, id, e)
	}
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return err
	}
	return b.replicated(ctx, id)
}

func (b *Inbox) enqueue(ctx context.Context, id string, e intake.Event) error {
	headers := map[string]string{sourceHeader: e.Source, kindHeader: e.Kind, idHeader: e.ID}
	event := asynq.NewTaskWithHeaders(taskType, b.cfg.Redactor.JSON(e.Body), headers)
	_, err := b.client.Load().EnqueueContext(ctx, event, asynq.TaskID(id), asynq.Queue(b.cfg.Queue),
		asynq.MaxRetry(maxRetries), asynq.Timeout(2*limit), asynq.Retention(kept+e.Known))
	return err
}

// replicated waits until no fail-over of Redis can lose an event. A new master confirms its own writes, and may lack
// the event.
func (b *Inbox) replicated(ctx context.Context, id string) error {
	if b.cfg.Replicate == nil {
		return nil
	}
	if err := b.cfg.Replicate(ctx); err != nil {
		return err
	}
	_, err := b.find(ctx, id)
	return err
}

// forget makes room for an event that its sender has sent again if it was given up. What the sender says now counts: it
// may have been given up weeks ago.
//
// asynq cannot replace an event in one step. Of two repetitions at the same moment, one may delete what the other has
// stored before it stores its own. Only if its process dies in between, the event is lost.
func (b *Inbox) forget(ctx context.Context, id string) error {
	info, err := b.find(ctx, id)
	if err == nil && info.State == asynq.TaskStateArchived {
		err = b.inspector.DeleteTask(b.cfg.Queue, id)
	}
	if errors.Is(err, asynq.ErrTaskNotFound) { // another repetition of it was faster
		return nil
	}
	return err
}

// Knows reports whether an event with this ID is stored and was not given up.
func (b *Inbox) Knows(ctx context.Context, source, id string) (bool, error) {
	info, err := b.find(ctx, source+"."+id)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for event of %s: %w", source, err)
	}
	return info.State != asynq.TaskStateArchived, nil
}

// find returns an event. asynq's inspector takes no context, so nobody waits for it while Redis hangs.
func (b *Inbox) find(ctx context.Context, id string) (*asynq.TaskInfo, error) {
	type found struct {
		info *asynq.TaskInfo
		err  error
	}
	done := make(chan found, 1)
	go func() {
		info, err := b.inspector.GetTaskInfo(b.cfg.Queue, id)
		done <- found{info, err}
	}()
	select {
	case f := <-done:
		return f.info, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// All are the inboxes of a front door.
type All []*Inbox

// Serve starts interpreting what any process has accepted, until stop is called. stop waits for the events under way,
// also if it is called again.
func (all All) Serve() (stop func(), err error) {
	var stops []func()
	stop = sync.OnceFunc(func() { // asynq's own returns at once while another call waits
		for _, s := range stops {
			s()
		}
	})
	for _, b := range all {
		s, err := b.serve()
		if err != nil {
			stop()
			return nil, err
		}
		stops = append(stops, s)
	}
	return stop, nil
}

func (b *Inbox) serve() (stop func(), err error) {
	server := asynq.NewServerFromRedisClient(b.cfg.Redis, asynq.Config{
		Concurrency: b.cfg.AtOnce, Queues: map[string]int{b.cfg.Queue: 1}, ShutdownTimeout: shutdown,
		RetryDelayFunc: pause, TaskCheckInterval: checkInterval, DelayedTaskCheckInterval: time.Second,
		Logger: queue.Logger(b.cfg.Log), LogLevel: asynq.WarnLevel,
	})
	if err := server.Start(asynq.HandlerFunc(b.interpret)); err != nil {
		return nil, fmt.Errorf("start interpreting events: %w", err)
	}
	return server.Shutdown, nil
}

// pause returns how long an event waits after n failures and one more: at least as long as that asks for.
func pause(n int, err error, _ *asynq.Task) time.Duration {
	wait := queue.Backoff(n)
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		wait = max(wait, time.Until(later.At))
	}
	return wait
}

// interpret makes one attempt. asynq stores the outcome, and the text of an error.
func (b *Inbox) interpret(ctx context.Context, t *asynq.Task) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	h := t.Headers()
	e := intake.Event{Source: h[sourceHeader], Kind: h[kindHeader], ID: h[idHeader], Body: t.Payload()}
	n, _ := asynq.GetRetryCount(ctx)
	e.Again = n > 0
	log := b.cfg.Log.With("source", e.Source, "event", e.Kind, "id", e.ID)
	handle := b.handlers[e.Source]
	if handle == nil { // another front door may know it
		return fmt.Errorf("this front door interprets no events of %s", e.Source)
	}
	outcome, err := handle(ctx, e)
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		log.Info("event waits", "why", later.Why)
		return later
	}
	if err != nil {
		log.Warn("interpret event", "err", err)
		said := b.cfg.Redactor.String(err.Error())
		if errors.Is(err, intake.ErrUnreadable) {
			return givenUp(said)
		}
		return errors.New(said)
	}
	log.Debug("event interpreted", "outcome", outcome)
	if outcome == "" {
		return nil
	}
	if _, err := t.ResultWriter().Write([]byte(b.cfg.Redactor.String(outcome))); err != nil {
		log.Debug("note the outcome", "err", err) // the event is interpreted: it must not be tried again
	}
	return nil
}

// givenUp is an error after which asynq keeps an event for an operator, who reads its text.
type givenUp string

func (g givenUp) Error() string { return string(g) }

func (givenUp) Is(target error) bool { return target == asynq.SkipRetry }
