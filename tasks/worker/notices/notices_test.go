package notices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

// telling is a source that shows why its tasks wait.
type telling struct {
	tasks.Source

	told chan string
	fail *int // how often it fails
}

func (telling) Name() string { return "fake" }

func (s telling) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{
		Waits: s.waits,
		Say:   func(_ context.Context, _ tasks.Task, text string) error { s.told <- text; return errors.New("limited") },
		Ask:   func(context.Context, tasks.Task, tasks.Question) error { return nil },
	}
}

func (s telling) waits(_ context.Context, t tasks.Task, h tasks.Headline) error {
	if *s.fail--; *s.fail >= 0 {
		return errors.New("limited")
	}
	s.told <- t.ID + " " + h.Text(func(at string, _ time.Time) string { return at + "later" })
	return nil
}

// notifier returns a notifier, its source, and the ID of a task that waits.
func notifier(t *testing.T, client *redis.Client) (*Notifier, telling, string) {
	t.Helper()
	kept, err := store.New(store.Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	source := telling{told: make(chan string, 10), fail: new(int)}
	task := tasks.Task{ID: tasks.NewID(time.Now(), "fake", "a"), Source: "fake", Thread: "fake/a", Class: tasks.Interactive}
	if _, _, err := kept.Submit(t.Context(), store.Record{
		ID: task.ID, Thread: task.Thread, Class: task.Class, Task: format.JSON(task),
	}); err != nil {
		t.Fatal(err)
	}
	all := &sources.Set{All: []tasks.Source{source}}
	return New(kept, all, slog.New(slog.DiscardHandler)), source, task.ID
}

// A reason that follows another one quickly is shown later. What the leader posts is not: it sees the reason again.
func TestReasonsAreToldApart(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	n.interval = time.Hour
	kept, delivery := n.store, 0
	handBack := func(why string) {
		claim, err := kept.Claim(t.Context(), id, delivery, "w")
		if err == nil {
			err = claim.Return(t.Context(), store.Wait{Why: why})
		}
		if err != nil {
			t.Fatal(err)
		}
		delivery++
		n.Post(Notice{ID: id, Delivery: delivery, Key: why})
		n.Wait()
	}
	for _, why := range []string{"a", "b", "c"} {
		handBack(why)
	}
	if later := n.later[id]; later.Key != "c" || time.Until(later.at) < time.Minute {
		t.Errorf("pending updates: %+v", n.later)
	}
	n.Post(Notice{ID: id, Delivery: delivery, Key: "1", Repeats: true})
	n.Wait()
	if len(n.later) != 0 {
		t.Errorf("pending updates: %+v", n.later)
	}
	handBack("d")
	n.interval = time.Millisecond // the hour is over
	n.mu.Lock()
	for id, notice := range n.later {
		notice.at = time.Now()
		n.later[id] = notice
	}
	n.mu.Unlock()
	ctx := await.Context(t)
	n.PostLater(ctx)
	for _, want := range []string{"a", "d"} {
		select {
		case told := <-source.told:
			if told != id+" Waiting: "+want {
				t.Errorf("updated %s, want %s", told, want)
			}
		case <-ctx.Done():
			t.Fatalf("%s got no update", want)
		}
	}
}

// outage makes a number of Redis' commands fail.
type outage struct{ left int }

func (*outage) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.left--; o.left >= 0 {
			return errors.New("no connection")
		}
		return next(ctx, cmd)
	}
}

// A notice that is marked as told and could not be shown is shown later, but not for ever.
func TestFailedNoticeIsShownLater(t *testing.T) {
	t.Parallel()
	client := redistest.Client(t, redistest.Start(t))
	lost := new(outage)
	client.AddHook(lost)
	for name, tc := range map[string]struct {
		notice Notice
		lost   int // Redis' commands
		fails  int
		told   int
	}{
		"a reason":              {Notice{Key: "k"}, 0, 2, 1},
		"as often as allowed":   {Notice{Key: "k"}, 0, maxFailed, 1},
		"in vain":               {Notice{Key: "k"}, 0, maxFailed + 1, 0},
		"without Redis":         {Notice{Key: "k"}, 2, 0, 1},
		"the leader's":          {Notice{Key: "k", Repeats: true}, 0, 2, 1},
		"the leader's, without": {Notice{Key: "k", Repeats: true}, 1, 0, 0}, // it sees the reason again
		"kept, without Redis":   {Notice{marked: true}, 1, 1, 1},
		"Redis does not return": {Notice{marked: true}, 100, 0, 0},
	} {
		client.FlushDB(t.Context())
		n, source, id := notifier(t, client)
		n.interval, *source.fail, tc.notice.ID = 0, tc.fails, id
		lost.left = tc.lost
		n.Post(tc.notice)
		for range maxFailed + 1 {
			n.Wait()
			n.PostLater(t.Context())
		}
		n.Wait()
		lost.left = 0
		if len(source.told) != tc.told || len(n.later) > 0 {
			t.Errorf("%s: told %d times, and %d are kept", name, len(source.told), len(n.later))
		}
	}
	lost.left = 0
	n, _, id := notifier(t, client)
	client.FlushDB(t.Context())
	n.Post(Notice{ID: id, marked: true})
	if n.Wait(); len(n.later) > 0 {
		t.Error("it is kept although its task is gone")
	}
}

// A leader that is not set up for a task's source can never show why it waits. It keeps its place for other notices, and
// takes nothing away from the worker that can.
func TestNoticeOfAnotherWorkersSource(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	leader := New(n.store, &sources.Set{}, slog.New(slog.DiscardHandler))
	leader.Post(Notice{ID: id, Key: "k"})
	leader.Wait()
	if len(leader.later) > 0 {
		t.Errorf("kept: %+v", leader.later)
	}
	n.Post(Notice{ID: id, Key: "k"})
	n.Wait()
	if len(source.told) != 1 {
		t.Errorf("told %d times", len(source.told))
	}
}

// What the status shows is not said in the thread as well.
func TestShownReasonIsNotSaid(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	for _, noticed := range []bool{true, false} {
		said, err := n.SayOnce(t.Context(), id, "x", noticed, func(context.Context) (bool, error) { return true, nil })
		if tried := len(source.told) == 1; tried == noticed || said || (err == nil) != noticed {
			t.Errorf("noticed %t: tried %t, said %t, %v", noticed, tried, said, err)
		}
	}
}

// afterKey calls a function after the first command of Redis that has a key among its arguments.
type afterKey struct {
	key  string
	once sync.Once
	call func()
}

func (h *afterKey) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *afterKey) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *afterKey) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && slices.Contains(cmd.Args(), any(h.key)) {
			h.once.Do(h.call)
		}
		return err
	}
}

// A task that waits for a budget is tried again and again. Its reason is told once, also if the next attempt begins
// just then.
func TestReasonIsToldDuringTheNextAttempt(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t)
	client := redistest.Client(t, url)
	n, source, id := notifier(t, client)
	other, err := store.New(store.Config{Redis: redistest.Client(t, url)})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := n.store.Claim(t.Context(), id, 0, "w")
	if err == nil {
		err = claim.Return(t.Context(), store.Wait{Why: "no budget"})
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	client.AddHook(&afterKey{key: "no budget", call: func() {
		_, err := other.Claim(t.Context(), id, 1, "w")
		begun = err == nil
	}})
	n.Post(Notice{ID: id, Delivery: 1, Key: "no budget"})
	n.Wait()
	if len(source.told) != 1 || !begun {
		t.Fatalf("told %d times; the next attempt has begun: %t", len(source.told), begun)
	}
	if told := <-source.told; told != id+" Waiting: no budget" {
		t.Errorf("told %s", told)
	}
}

// However many tasks wait, only a few are updated at a time; the others later, within the limit of what is kept.
func TestFewAreToldAtOnce(t *testing.T) {
	t.Parallel()
	n := New(nil, nil, slog.New(slog.DiscardHandler))
	for range posters {
		n.tokens <- struct{}{}
	}
	for i := range maxKept + 10 {
		n.Post(Notice{ID: fmt.Sprint(i), Key: "k", marked: true})
	}
	n.Wait() // for none
	if got := len(n.later); got != maxKept {
		t.Errorf("%d are kept", got)
	}
	if got := len(n.due(posters)); got != posters {
		t.Errorf("%d are due", got)
	}
}
