package notices

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// handBack returns a claimed task with a reason, and posts that.
func handBack(t *testing.T, n *Notifier, id string, delivery int, why string) {
	t.Helper()
	claim, err := n.store.Claim(t.Context(), id, delivery, "w")
	if err == nil {
		err = claim.Return(t.Context(), store.Wait{Why: why, Tell: why})
	}
	if err != nil {
		t.Fatal(err)
	}
	post(n, Notice{ID: id, Delivery: delivery + 1, Key: why})
}

func post(n *Notifier, t Notice) {
	n.Post(t)
	n.Wait()
}

// all returns what was told since the last call.
func (s telling) all() (list []string) {
	for len(s.told) > 0 {
		list = append(list, <-s.told)
	}
	return list
}

// A reason is shown once, and one that follows another quickly when it is posted again.
func TestReasonsAreToldApart(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	n.interval = time.Hour
	for i, why := range []string{"a", "b", "a"} {
		handBack(t, n, id, i, why)
	}
	if got := source.all(); !slices.Equal(got, []string{id + " Waiting: a"}) {
		t.Errorf("within the interval: %q", got)
	}
	handBack(t, n, id, 3, "c")
	n.interval = 0
	for _, late := range []Notice{{ID: id, Delivery: 3, Key: "b"}, {ID: id, Delivery: 4, Key: "a"}} {
		if post(n, late); len(source.told) > 0 {
			t.Errorf("%+v is shown: %q", late, source.all())
		}
	}
	for range 2 {
		post(n, Notice{ID: id, Delivery: 4, Key: "c"})
	}
	if got := source.all(); !slices.Equal(got, []string{id + " Waiting: c"}) {
		t.Errorf("after the interval: %q", got)
	}
}

// What could not be shown is not known, so that the leader posts it again.
func TestFailedNoticeIsPostedAgain(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	n.interval, *source.fail = 0, 2
	handBack(t, n, id, 0, "x")
	for range 4 {
		live, err := n.store.Live(t.Context())
		if err != nil || len(live) != 1 || live[0].Tell != "x" || (live[0].Explained == "x") != (len(source.told) > 0) {
			t.Errorf("told %d times: %+v, %v", len(source.told), live, err)
		}
		post(n, Notice{ID: id, Delivery: 1, Key: "x"})
	}
	if got := source.all(); len(got) != 1 {
		t.Errorf("told %q", got)
	}
}

// A worker that is not set up for a task's source leaves it to others to show why it waits.
func TestNoticeOfAnotherWorkersSource(t *testing.T) {
	t.Parallel()
	n, source, id := notifier(t, redistest.Client(t, redistest.Start(t)))
	all := n.sources
	n.sources = &sources.Set{}
	notice := Notice{ID: id, Key: "k"}
	post(n, notice)
	n.sources = all
	if post(n, notice); len(source.told) != 1 {
		t.Errorf("told %q", source.all())
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
	post(n, Notice{ID: id, Delivery: 1, Key: "no budget"})
	if len(source.told) != 1 || !begun {
		t.Fatalf("told %d times; the next attempt has begun: %t", len(source.told), begun)
	}
	if told := <-source.told; told != id+" Waiting: no budget" {
		t.Errorf("told %s", told)
	}
}

// Only a few are posted at a time.
func TestFewAreToldAtOnce(t *testing.T) {
	t.Parallel()
	n := New(nil, nil, slog.New(slog.DiscardHandler))
	release := make(chan struct{})
	for i := range posters + 1 {
		if begun := n.Background(func() { <-release }); begun != (i < posters) {
			t.Errorf("number %d began: %t", i+1, begun)
		}
	}
	close(release)
	n.Wait()
}
