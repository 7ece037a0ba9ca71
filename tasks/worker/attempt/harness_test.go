package attempt

import (
	"context"
	"flag"
	"log/slog"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/machine"
	"github.com/errand-fleet/errand/tasks/worker/notices"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

// TestMain lets the package's tests, which wait more than they compute, run beside each other.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	m.Run()
}

// fleet is a desk on a real Redis, for single steps of attempts. The stories of whole attempts are tests of
// tasks/worker.
type fleet struct {
	*testing.T
	url    string
	desk   *desk.Desk
	store  *store.Store
	queue  *queue.Queue
	rdb    *redis.Client
	source *speaker
	policy rights.Policy
	n      int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{
		T: t, url: redistest.Start(t), source: &speaker{said: make(chan string, 10), waited: make(chan string, 10)},
		policy: rights.Policy{Limit: time.Hour},
	}
	f.rdb = f.redis()
	f.store = f.open(store.Config{Redis: f.rdb, ClaimTTL: 600 * time.Millisecond, Refresh: 100 * time.Millisecond})
	f.queue = queue.New(f.store, f.rdb, time.Hour)
	f.desk = desk.New(f.store, f.queue, f.policy, nil)
	return f
}

func (f *fleet) redis() *redis.Client {
	f.Helper()
	return redistest.Client(f, f.url)
}

// open returns a store with its own times.
func (f *fleet) open(c store.Config) *store.Store {
	f.Helper()
	s, err := store.New(c)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// idle returns the processor of a worker.
func (f *fleet) idle(change ...func(*Config)) *Processor {
	f.Helper()
	log := slog.New(slog.NewTextHandler(f.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := Config{
		Worker: "w", Store: f.store, Queue: f.queue, Runner: &known{}, Policy: f.policy, Log: log,
		Slots: machine.NewSlots(8, machine.Memory{}, log), Drained: f.Context(), Meter: unmetered{},
		Timing: Timing{Again: time.Millisecond, Reset: time.Millisecond, Release: time.Millisecond}.WithDefaults(),
	}
	for _, change := range change {
		change(&c)
	}
	agents := c.Runner.(*known)
	c.Sources = &sources.Set{All: []tasks.Source{f.source}}
	c.Health = machine.NewHealth(machine.Config{CLI: agents, Store: c.Store, Every: time.Hour, Log: log})
	c.Credentials = &Credentials{Known: agents, Store: c.Store, Own: c.Credential, Log: log}
	c.Notices = notices.New(c.Store, c.Sources, log)
	f.Cleanup(c.Notices.Wait) // they write to the log
	return New(c)
}

// task creates a task; each is one microsecond later than the one before.
func (f *fleet) task(thread, prompt string) tasks.Task {
	f.n++
	return tasks.Task{
		ID: tasks.NewID(time.UnixMicro(1_700_000_000_000_000+int64(f.n)), "fake", thread), Source: "fake", Kind: "test",
		Thread: "fake/" + thread, Class: tasks.Interactive, Profile: agent.Read, Actor: "somebody", Prompt: prompt,
		Reply: new(tasks.Reply),
	}
}

func (f *fleet) submit(t tasks.Task) string {
	f.Helper()
	if _, err := f.desk.Submit(f.Context(), t); err != nil {
		f.Fatal(err)
	}
	return t.ID
}

func (f *fleet) put(key, field, value string) {
	f.Helper()
	if err := f.rdb.HSet(f.Context(), key, field, value).Err(); err != nil {
		f.Fatal(err)
	}
}

// lapse lets the claim on a thread expire.
func (f *fleet) lapse(thread string) {
	f.Helper()
	if err := f.rdb.Del(f.Context(), "errand:claim:"+thread).Err(); err != nil {
		f.Fatal(err)
	}
}

// claimed claims a waiting task for a worker. The caller hands the run on.
func (f *fleet) claimed(w *Processor, id string) *run {
	f.Helper()
	claim, err := f.store.Claim(f.Context(), id, 0, "w")
	if err != nil {
		f.Fatal(err)
	}
	return w.hold(f.Context(), claim, nil)
}

// speaker is a source that can speak in its threads, and shows why tasks wait.
type speaker struct {
	tasks.Source

	said, waited chan string
	shows        bool // its notices are seen
}

func (*speaker) Name() string { return "fake" }

func (s *speaker) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{
		Say: s.say, Ask: func(context.Context, tasks.Task, tasks.Question) error { return nil },
		Waits: s.waits, ShowsWait: func(tasks.Task) bool { return s.shows },
	}
}

func (s *speaker) say(_ context.Context, _ tasks.Task, text string) error {
	s.said <- text
	return nil
}

func (s *speaker) waits(_ context.Context, t tasks.Task, h tasks.Headline) error {
	s.waited <- t.ID + " " + h.Text(func(at string, _ time.Time) string { return at + "later" })
	return nil
}

// known is a runner that runs nothing and has credentials.
type known struct {
	Runner

	credentials map[string]agent.CredentialState
}

func (*known) Separated() bool { return true }

func (*known) Health(context.Context) agent.Health { return agent.Health{OK: true} }

func (k *known) Credentials() map[string]agent.CredentialState { return k.credentials }

func (*known) Learn(map[string]agent.CredentialState) {}

// unmetered is a meter that hears nothing.
type unmetered struct{}

func (unmetered) Began(tasks.Task, time.Duration) {}
func (unmetered) Ran(tasks.Task, agent.Result)    {}
func (unmetered) Returned(string, Return)         {}

func withCredential(c *Config) { c.Credential = "c" }

func answer(text string) agent.Result {
	return agent.Result{
		Outcome: agent.Done, Text: text,
		Session: agent.Session{ID: "11111111-1111-1111-1111-111111111111", Data: []byte(text)},
	}
}

func failed(c agent.Class) agent.Result {
	return agent.Result{Outcome: agent.Failed, Error: agent.NewError(c, "it did not work")}
}

// limited is the result of a run that has reached a usage limit.
func limited(at time.Time) agent.Result {
	r := failed(agent.ClassUsageLimit)
	r.RetryAt = at
	return r
}
