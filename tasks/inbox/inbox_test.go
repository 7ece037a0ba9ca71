package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
)

const secret = "hunter2-hunter2"

// fleet makes the inboxes of front doors with one real Redis.
func fleet(t *testing.T) (door func() *Inbox, inspector *asynq.Inspector) {
	t.Helper()
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	opt.ContextTimeoutEnabled = true
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return func() *Inbox {
		return New(Config{Queue: Incoming, AtOnce: 4, Redis: rdb, Redactor: agent.NewRedactor(secret)})
	}, asynq.NewInspectorFromRedisClient(rdb)
}

func accept(t *testing.T, b *Inbox, id, body string) {
	t.Helper()
	if err := b.Accept(t.Context(), intake.Event{
		Source: "hub", Kind: "issue opened", ID: id, Body: []byte(body),
	}); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T, b *Inbox, h intake.Handler) (stop func()) {
	t.Helper()
	b.Handle("hub", h)
	stop, err := All{b}.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

// inState returns the event with an ID once it is in a state.
func inState(t *testing.T, inspector *asynq.Inspector, id string, want asynq.TaskState) (info *asynq.TaskInfo) {
	t.Helper()
	await.Until(t, id+" is "+want.String(), func() bool {
		var err error
		if info, err = inspector.GetTaskInfo(Incoming, "hub."+id); err != nil {
			t.Fatal(err)
		}
		return info.State == want
	})
	return info
}

// What a front door has accepted, another one interprets, once, although the first one is gone.
func TestEventsAreInterpreted(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	gone := door()
	for range 2 {
		accept(t, gone, "1", `{"text":"it is `+secret+`"}`)
	}
	got := make(chan intake.Event, 10)
	stop := serve(t, door(), func(_ context.Context, e intake.Event) (string, error) {
		got <- e
		return "Task 1 of " + secret, nil
	})
	if e := <-got; e.Source != "hub" || e.Kind != "issue opened" || e.ID != "1" ||
		string(e.Body) != `{"text":"it is [redacted]"}` {
		t.Errorf("%+v %s", e, e.Body)
	}
	if info := inState(t, inspector, "1", asynq.TaskStateCompleted); string(info.Result) != "Task 1 of [redacted]" {
		t.Errorf("%s", info.Result)
	}
	accept(t, gone, "1", "{}") // again, after it was interpreted
	for range 2 {
		accept(t, gone, "", "{}") // no ID: another event each time
		<-got
	}
	stop()
	if len(got) > 0 {
		t.Errorf("more events: %+v", <-got)
	}
}

// A secret in an event, such as a private key that was cut within quotes, takes nothing but itself away.
func TestEventsWithASecret(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	key := strings.Repeat("MIIEvQIBADANBgkq", 4)
	accept(t, door(), "1", `{"action":"created","body":"\"BEGIN PRIVATE KEY-----\n`+key+`\n\" fails"}`)
	info, err := inspector.GetTaskInfo(Incoming, "hub.1")
	if want := `{"action":"created","body":"\"[redacted]\" fails"}`; err != nil || string(info.Payload) != want {
		t.Errorf("%s, %v", info.Payload, err)
	}
}

// An event is tried again until it can be interpreted, and no earlier than a service wants.
func TestEventsAreTriedAgain(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	b, attempts := door(), make(chan bool, 10)
	n := 0
	serve(t, b, func(_ context.Context, e intake.Event) (string, error) {
		n++
		attempts <- e.Again
		switch n {
		case 1:
			return "", fmt.Errorf("limited: %w", &tasks.ErrLater{At: time.Now(), Why: "too many"})
		case 2:
			return "", errors.New("the service fails with " + secret)
		}
		return "done", nil
	})
	accept(t, b, "1", "{}")
	if first, second := <-attempts, <-attempts; first || !second { // also after a failure that only asks for a pause
		t.Errorf("tried again: %v, %v", first, second)
	}
	info := inState(t, inspector, "1", asynq.TaskStateRetry)
	if wait := time.Until(info.NextProcessAt); info.LastErr != "the service fails with [redacted]" || wait > 5*time.Second {
		t.Errorf("again in %s after %s", wait, info.LastErr)
	}
	<-attempts
	inState(t, inspector, "1", asynq.TaskStateCompleted)
}

// What cannot be interpreted is kept at once, and tried again when the cause is gone: by an operator, or because its
// sender has sent it again.
func TestFailedEvents(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	b := door()
	all := All{b, New(Config{Queue: Outgoing, Redis: b.cfg.Redis})}
	if list, err := all.Failed(t.Context()); err != nil || len(list) > 0 {
		t.Fatalf("before the first: %+v, %v", list, err)
	}
	var mended atomic.Bool
	serve(t, b, func(context.Context, intake.Event) (string, error) {
		if mended.Load() {
			return "done", nil
		}
		return "", fmt.Errorf("%w: it has no number", intake.ErrUnreadable)
	})
	accept(t, b, "1", `{"a":1}`)
	accept(t, b, "2", `{"a":2}`)
	inState(t, inspector, "2", asynq.TaskStateArchived)
	info := inState(t, inspector, "1", asynq.TaskStateArchived)
	if string(info.Payload) != `{"a":1}` {
		t.Errorf("%s", info.Payload)
	}
	list, err := all.Failed(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != "hub.1" || list[0].Source != "hub" || list[0].Attempts != 1 ||
		list[0].Kind != "issue opened" || !list[0].Next.IsZero() || list[0].Failed.IsZero() ||
		!strings.Contains(list[0].Problem, "it has no number") {
		t.Fatalf("%+v, %v", list, err)
	}
	if said := all.Diagnose(t.Context()); len(said) != 1 || !strings.Contains(said[0].Why, "given up: 2") {
		t.Errorf("%+v", said)
	}
	mended.Store(true)
	if err := all.Replay(t.Context(), "hub.1"); err != nil {
		t.Fatal(err)
	}
	inState(t, inspector, "1", asynq.TaskStateCompleted)
	var again sync.WaitGroup
	for range 10 {
		again.Go(func() {
			e := intake.Event{Source: "hub", ID: "2", Body: []byte(`{"a":3}`)}
			if err := b.Accept(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	again.Wait()
	info = inState(t, inspector, "2", asynq.TaskStateCompleted)
	if string(info.Payload) != `{"a":3}` { // its sender may mean another event by now
		t.Errorf("%s", info.Payload)
	}
	for _, id := range []string{"hub.1", "none"} {
		if err := all.Replay(t.Context(), id); !errors.Is(err, tasks.ErrNotFound) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// What errand finds by itself, again and again, is interpreted once while it can be found. Given up, it is tried again
// by an operator only.
func TestFoundEvents(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	b := door()
	attempts := make(chan string, 10)
	serve(t, b, func(_ context.Context, e intake.Event) (string, error) {
		attempts <- e.ID
		if e.ID == "bad" {
			return "", intake.ErrUnreadable
		}
		return "done", nil
	})
	for range 2 {
		for id, want := range map[string]asynq.TaskState{
			"bad": asynq.TaskStateArchived, "good": asynq.TaskStateCompleted,
		} {
			if err := b.Accept(t.Context(), intake.Event{
				Source: "hub", Kind: "polled", ID: id, Body: []byte("{}"), Known: 48 * time.Hour, Found: true,
			}); err != nil {
				t.Fatal(err)
			}
			if info := inState(t, inspector, id, want); info.Retention < 48*time.Hour {
				t.Errorf("%s is known for %s", id, info.Retention)
			}
		}
	}
	if len(attempts) != 2 {
		t.Errorf("%d attempts", len(attempts))
	}
}

// A failure is reported after some attempts, and what was given up at once.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	next := time.Now()
	brief := tasks.FailedEvent{Source: "hub", Kind: "a", Attempts: troubled - 1, Next: next}
	long := tasks.FailedEvent{Source: "hub", Kind: "b", Attempts: troubled, Next: next, Problem: "refused"}
	dead := tasks.FailedEvent{Source: "webhook", Kind: "ci", Attempts: 1, Problem: "no"}
	for want, list := range map[string][]tasks.FailedEvent{
		"":                                    {brief},
		"events fail, such as hub b: refused": {brief, long},
		"events that were given up: 1, such as webhook ci: no": {dead, long},
	} {
		if said := diagnose(list); len(said) != 1 || said[0].Why != want || (want != "") != (said[0].Remedy != "") {
			t.Errorf("%+v, want %q", said, want)
		}
	}
}

// A front door stops its inboxes when its server begins to shut down, and before it closes Redis.
func TestEachStopWaits(t *testing.T) {
	t.Parallel()
	door, _ := fleet(t)
	b := door()
	got, answers := make(chan struct{}), make(chan struct{})
	stop := serve(t, b, func(context.Context, intake.Event) (string, error) {
		close(got)
		<-answers
		return "", nil
	})
	accept(t, b, "1", "{}")
	<-got
	stopped := make(chan struct{}, 2)
	for range 2 {
		go func() { stop(); stopped <- struct{}{} }()
	}
	if !goroutines.Await(func() bool { return len(stopped) > 0 }, 2, "inbox.TestEachStopWaits", "sync.(*Once)") {
		t.Error("it does not wait for an event")
	}
	close(answers)
	for range 2 {
		<-stopped
	}
}

// Events of a source that a front door does not have wait for another one.
func TestEventsOfAnUnknownSource(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	b := door()
	accept(t, b, "1", "{}")
	stop, err := All{b}.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	inState(t, inspector, "1", asynq.TaskStateRetry)
}

// An event that is not stored is not accepted.
func TestEventsThatAreNotStored(t *testing.T) {
	t.Parallel()
	nowhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nothing listens on tcpmux
	defer nowhere.Close()
	if err := New(Config{Queue: Incoming, Redis: nowhere}).Accept(t.Context(), intake.Event{Source: "hub"}); err == nil {
		t.Error("accepted without Redis")
	}
}

// The pauses add up to about a day, and are no shorter than a service wants.
func TestPauses(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	for n := range maxRetries {
		sum += pause(n, errors.New("it failed"), nil)
	}
	if sum < 23*time.Hour || sum > 25*time.Hour {
		t.Errorf("%v in all", sum)
	}
	later := &tasks.ErrLater{At: time.Now().Add(time.Hour)}
	if wait := pause(0, later, nil); wait < 59*time.Minute || wait > time.Hour {
		t.Errorf("%v for an hour", wait)
	}
	later.At = time.Now().Add(-time.Hour)
	if wait := pause(3, later, nil); wait != queue.Backoff(3) {
		t.Errorf("%v after an hour", wait)
	}
}

// After Redis has lost all its data, events are accepted, repeated ones and with replicas, too, and asynq knows the
// queue again: the inboxes of doctor and asynq's web UI are those that it knows.
func TestEventsAfterALossOfAllData(t *testing.T) {
	t.Parallel()
	for name, replicate := range map[string]func(context.Context) error{
		"one Redis": nil, "replicas": func(context.Context) error { return nil },
	} {
		door, inspector := fleet(t)
		b := door()
		b.cfg.Replicate = replicate
		for range 2 {
			if err := b.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				accept(t, b, "e1", "{}")
			}
			if queues, err := inspector.Queues(); err != nil || len(queues) != 1 {
				t.Errorf("%s: queues %q, %v", name, queues, err)
			}
			inState(t, inspector, "e1", asynq.TaskStatePending)
		}
	}
}

// With replicas an event counts as accepted only if they have it, also if its sender sends it again, and if a master
// took over meanwhile that lacks it.
func TestReplicated(t *testing.T) {
	t.Parallel()
	door, inspector := fleet(t)
	b := door()
	event := intake.Event{Source: "hub", ID: "e1", Body: []byte(`{}`)}
	away := errors.New("too few replicas")
	for name, c := range map[string]struct {
		replicate func(context.Context) error
		want      error
	}{
		"no replica": {func(context.Context) error { return away }, away},
		"a master without it": {func(context.Context) error {
			return inspector.DeleteTask(Incoming, "hub.e1")
		}, asynq.ErrTaskNotFound},
		"replicas": {func(context.Context) error { return nil }, nil},
	} {
		b.cfg.Replicate = c.replicate
		for range 2 {
			if err := b.Accept(t.Context(), event); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	}
}
