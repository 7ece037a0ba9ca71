package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/tasks"
)

// fakeQueue is Redis behind a poller, and asynq in front of it.
type fakeQueue struct {
	*poller
	pending map[string]int // deliveries by class
	err     error
	asked   []string // the classes whose polls reached Redis
}

func newFakeQueue(slots int) *fakeQueue {
	return &fakeQueue{poller: newPoller(nil, "", slots, new(atomic.Int64)), pending: map[string]int{}}
}

// round polls the classes like asynq until one has a delivery, and returns that class or "".
func (q *fakeQueue) round() string {
	for _, class := range tasks.Classes {
		cmd := redis.NewCmd(context.Background(), "evalsha", "sha", 4, "asynq:{"+class+"}:pending",
			"asynq:{"+class+"}:paused")
		err := q.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
			q.asked = append(q.asked, class)
			if q.err == nil && q.pending[class] > 0 {
				q.pending[class]--
				return nil
			}
			if q.err == nil {
				return redis.Nil
			}
			return q.err
		})(context.Background(), cmd)
		if err == nil {
			return class
		}
	}
	return ""
}

// polled runs rounds and compares what reached Redis.
func (q *fakeQueue) polled(t *testing.T, rounds int, want ...string) {
	t.Helper()
	q.asked = nil
	for range rounds {
		q.round()
	}
	if !slices.Equal(q.asked, want) {
		t.Errorf("asked for %v, want %v", q.asked, want)
	}
}

func TestPollerWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue(4)
		q.polled(t, 1, tasks.Classes...)
		begun := time.Now()
		q.polled(t, 1) // the queues were empty: nothing is asked, and the last poll waits
		if d := time.Since(begun); d < pollAnyway/2 || d > pollAnyway*3/2 {
			t.Errorf("it waited %v without an announcement", d)
		}
		q.polled(t, 1, tasks.Classes...) // an announcement may have been lost

		time.AfterFunc(time.Millisecond, func() { q.note(tasks.Review) })
		begun = time.Now()
		q.polled(t, 2, tasks.Review)
		if d := time.Since(begun); d < time.Millisecond || d > pollAnyway*3/2 {
			t.Errorf("an announcement was heard after %v", d)
		}

		q.stop()
		begun = time.Now()
		q.polled(t, 3)
		if d := time.Since(begun); d != 0 {
			t.Errorf("a stopped poller waited %v", d)
		}
	})
}

func TestPollerKeepsLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue(4)
		q.round()
		q.pending[tasks.Maintenance], q.pending[tasks.Interactive] = 3, 1
		q.note(tasks.Maintenance)
		q.note(tasks.Interactive)
		q.polled(t, 1, tasks.Interactive)
		// One delivery was taken, so there may be more. Maintenance has one place.
		q.polled(t, 1, tasks.Interactive, tasks.Maintenance)
		time.AfterFunc(time.Millisecond, func() { q.done(tasks.Maintenance) })
		q.polled(t, 2, tasks.Maintenance)
		if n := q.pending[tasks.Maintenance]; n != 1 {
			t.Errorf("%d deliveries left, want 1", n)
		}
	})
}

func TestPollerAfterAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue(2)
		q.round()
		q.err = errors.New("no route to host")
		for range 5 {
			q.note(tasks.Maintenance)
			q.round()
		}
		q.err, q.pending[tasks.Maintenance] = nil, 1
		q.polled(t, 1, tasks.Maintenance) // at once, and the failed polls have taken no place
		if q.pending[tasks.Maintenance] != 0 {
			t.Error("the delivery was not taken")
		}
	})
}

// A few workers of a large fleet make due deliveries pending; a small fleet's workers all do.
func TestForwarders(t *testing.T) {
	t.Parallel()
	q := newFakeQueue(2)
	passed := 0
	forward := func() {
		cmd := redis.NewCmd(t.Context(), "evalsha", "sha", 2, "asynq:{review}:scheduled", "asynq:{review}:pending")
		err := q.ProcessHook(func(_ context.Context, cmd redis.Cmder) error {
			passed++
			cmd.(*redis.Cmd).SetVal(int64(0))
			return nil
		})(t.Context(), cmd)
		if n, ierr := cmd.Int(); err != nil || ierr != nil || n != 0 {
			t.Fatalf("%d, %v, %v", n, err, ierr)
		}
	}
	for range 100 {
		forward()
	}
	if passed != 100 {
		t.Errorf("%d of 100 requests of a single worker passed", passed)
	}
	passed = 0
	q.peers.Store(300)
	for range 3000 {
		forward()
	}
	if passed == 0 || passed > 300 {
		t.Errorf("%d of 3,000 requests passed in a fleet of 300, want about 30", passed)
	}
}

// forwarding is a poller that notes what asynq is answered when it forwards the scheduled deliveries of a class.
type forwarding struct {
	*poller
	answers chan int
}

func (p forwarding) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := p.poller.ProcessHook(next)(ctx, cmd)
		what, class := tasks.RequestOf(cmd)
		if n, ok := cmd.(*redis.Cmd); ok && what == tasks.Forward && class == tasks.Review &&
			cmd.Args()[3] == "asynq:{review}:scheduled" {
			moved, _ := n.Int()
			p.answers <- moved
		}
		return err
	}
}

// Thousands of deliveries that are due at once become pending at once, also in a fleet in which a worker forwards only
// now and then.
func TestForwardsAllThatIsDue(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	const due = 3000
	for i := range due {
		if err := f.queue.Enqueue(t.Context(), fmt.Sprintf("%d-fake-x", i), tasks.Review, 0,
			time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	scheduled := redis.ZStore{Keys: []string{"asynq:{review}:scheduled"}, Weights: []float64{0}}
	_, err := f.rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ZUnionStore(t.Context(), scheduled.Keys[0], &scheduled) // all are due
		p.Set(t.Context(), "asynq:{review}:paused", 1, 0)         // none is taken
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p := forwarding{newPoller(f.store, "", 4, new(atomic.Int64)), make(chan int)}
	p.peers.Store(2 * forwarders)
	server := f.queue.Server("", 1, p, time.Second, slog.New(slog.DiscardHandler))
	if err := server.Start(asynq.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	moved := 0
	for moved == 0 {
		moved = <-p.answers
	}
	for n := moved; n > 0; moved += n {
		n = <-p.answers
	}
	if left := f.rdb.LLen(t.Context(), "asynq:{review}:pending").Val(); moved != due || left != due {
		t.Errorf("%d of %d were moved in one go; %d are pending", moved, due, left)
	}
	p.stop()
	go func() {
		for range p.answers {
			continue
		}
	}()
	server.Shutdown()
	close(p.answers)
}
