package worker

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
	"github.com/errand-fleet/errand/workspace"
)

func TestMain(m *testing.M) {
	agent.KeeperMain()
	// These tests wait more than they compute. The flag -parallel, which is read later, overrides it.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	m.Run()
}

// maxAttempts is how often a task is tried if the infrastructure fails.
const maxAttempts = 3

// fleet is a desk and any number of workers on a real Redis, with a source and an agent that do what the test says.
type fleet struct {
	*testing.T
	url    string
	desk   *desk.Desk
	store  *store.Store
	queue  *queue.Queue
	rdb    *redis.Client // of queue
	asynq  *asynq.Inspector
	source *fakeSource
	agent  *fakeAgent
	policy rights.Policy
	n      int
	stops  []func()
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetOn(t, redistest.Start(t))
}

func newFleetOn(t *testing.T, url string) *fleet {
	t.Helper()
	f := &fleet{
		T: t, url: url, source: &fakeSource{news: make(chan struct{}), waited: make(chan string, 100)},
		agent: &fakeAgent{},
	}
	f.policy = rights.Policy{Limit: time.Hour}
	f.rdb = f.redis()
	f.store, f.queue = f.over(f.rdb)
	f.put("errand:epoch", "since", "0") // the data is older than the tasks, so that none is in doubt
	f.put("errand:epoch", "process", "")
	f.asynq = asynq.NewInspectorFromRedisClient(f.rdb)
	f.desk = desk.New(f.store, f.queue, f.policy, nil)
	return f
}

// connect opens a client that looks like a separate process to Redis.
func (f *fleet) connect() (*store.Store, *queue.Queue) {
	f.Helper()
	return f.over(f.redis())
}

func (f *fleet) over(client *redis.Client) (*store.Store, *queue.Queue) {
	f.Helper()
	s := f.open(store.Config{Redis: client, ClaimTTL: 600 * time.Millisecond, Refresh: 100 * time.Millisecond})
	return s, queue.New(s, client, time.Hour)
}

// redis returns a separate client.
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

// stopAll drains all workers.
func (f *fleet) stopAll() {
	for _, stop := range f.stops {
		stop()
	}
}

// worker starts a worker and returns a function that drains it and waits for its end.
func (f *fleet) worker(change ...func(*Config)) (stop func()) {
	f.Helper()
	w := f.idle(change...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := w.Run(ctx); err != nil {
			f.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	f.stops = append(f.stops, stop)
	f.Cleanup(stop)
	return stop
}

// idle creates a worker that does not run.
func (f *fleet) idle(change ...func(*Config)) *Worker {
	f.Helper()
	s, q := f.connect()
	space, err := workspace.New(workspace.Config{Dir: filepath.Join(f.TempDir(), "w"), URL: func(r string) string {
		return "/nowhere/" + r
	}})
	if err != nil {
		f.Fatal(err)
	}
	c := Config{
		Store: s, Queue: q, Runner: f.agent, Workspace: space, Sources: []tasks.Source{f.source},
		Policy: f.policy, Slots: 4, Log: slog.New(slog.NewTextHandler(f.Output(),
			&slog.HandlerOptions{Level: slog.LevelWarn})),
		Timing: Timing{
			Observe: 300 * time.Millisecond, Reconcile: 50 * time.Millisecond, Lead: 500 * time.Millisecond,
			Outbox: 50 * time.Millisecond, Beat: 100 * time.Millisecond, Shutdown: 10 * time.Second,
			Timing: attempt.Timing{Again: time.Millisecond, Reset: time.Millisecond, Release: time.Millisecond},
		},
	}
	for _, f := range change {
		f(&c)
	}
	w, err := New(c)
	if err != nil {
		f.Fatal(err)
	}
	return w
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

// ending waits until a task's final message is posted and returns it.
func (f *fleet) ending(id string) tasks.Ending {
	f.Helper()
	ctx := await.Context(f)
	for {
		f.source.mu.Lock()
		e, ok := f.source.closed[id]
		news := f.source.news
		f.source.mu.Unlock()
		if ok {
			return e
		}
		select {
		case <-news:
		case <-ctx.Done():
			s, err := f.desk.Status(context.WithoutCancel(ctx), id)
			f.Fatalf("task %s was not closed: %+v, %v", id, s, err)
		}
	}
}

// fakeSource records the calls it gets.
type fakeSource struct {
	brief func(tasks.Task) (tasks.Brief, error)
	fail  func(attempt int) error // of Close
	open  <-chan struct{}         // Open waits for it; nil: it does not

	waited chan string // what is shown for waiting tasks

	mu     sync.Mutex
	closed map[string]tasks.Ending
	closes map[string]int
	opened int
	told   []agent.Event
	news   chan struct{} // closed and replaced at each Close that succeeds
}

func (s *fakeSource) Name() string { return "fake" }

func (s *fakeSource) Listen(context.Context, *http.ServeMux, *desk.Desk) error { return nil }

func (s *fakeSource) Brief(_ context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	if s.brief != nil {
		return s.brief(t)
	}
	return tasks.Brief{Keep: true}, nil
}

func (s *fakeSource) Capabilities() tasks.Capabilities {
	return tasks.Capabilities{Waits: s.waits, ShowsWait: func(tasks.Task) bool { return false }}
}

func (s *fakeSource) waits(_ context.Context, t tasks.Task, h tasks.Headline) error {
	select {
	case s.waited <- t.ID + " " + h.Text(func(at string, _ time.Time) string { return at + "later" }):
	default:
	}
	return nil
}

func (s *fakeSource) Open(_ context.Context, t tasks.Task) (tasks.Report, error) {
	if s.open != nil {
		<-s.open
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	return &fakeReport{s, t}, nil
}

type fakeReport struct {
	s *fakeSource
	t tasks.Task
}

func (r *fakeReport) Update(e agent.Event) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.told = append(r.s.told, e)
}

func (r *fakeReport) Close(_ context.Context, e tasks.Ending) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.s.closed == nil {
		r.s.closed, r.s.closes = map[string]tasks.Ending{}, map[string]int{}
	}
	r.s.closes[r.t.ID]++
	if r.s.fail != nil {
		if err := r.s.fail(r.s.closes[r.t.ID]); err != nil {
			return err
		}
	}
	r.s.closed[r.t.ID] = e
	close(r.s.news)
	r.s.news = make(chan struct{})
	return nil
}

// fakeAgent runs do and counts its runs.
type fakeAgent struct {
	do     func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error)
	script func(ctx context.Context, s agent.Script) (agent.Scripted, error)
	health *agent.Error // of the CLI; see breaks
	path   string       // of the CLI; may be empty
	flat   bool         // runs have no sandbox
	unread bool         // a run that is stopped has not read its prompt

	offered error // why it offers nothing

	mu     sync.Mutex
	offers []agent.Spec
	noted  []string // further messages that are in the conversation
	runs   []agent.Spec
	swept  int
	live   map[string]int // by directory of files, which means by thread
	most   int            // the most runs of one thread alive at the same time
	all    int
	peak   int // the most runs alive at the same time

	credentials map[string]agent.CredentialState
}

func (a *fakeAgent) Health(context.Context) agent.Health {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.health == nil {
		return agent.Health{OK: true, Path: a.path}
	}
	return agent.Health{Problem: a.health.Message, Sentence: a.health.User, Remedy: a.health.Remedy, Error: a.health}
}

func (a *fakeAgent) Separated() bool { return !a.flat }

func (a *fakeAgent) Credentials() map[string]agent.CredentialState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.credentials)
}

func (a *fakeAgent) Learn(known map[string]agent.CredentialState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.credentials {
		a.credentials[name] = known[name]
	}
}

// breaks gives the CLI a problem; nil repairs it.
func (a *fakeAgent) breaks(e *agent.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.health = e
}

func (a *fakeAgent) Sweep(context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.swept++
	return nil
}

func (a *fakeAgent) Offer(_ context.Context, s agent.Spec) (agent.Offer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.offers = append(a.offers, s)
	return agent.Offer{Agents: []agent.OfferedAgent{{Name: "strategist"}}}, a.offered
}

func (a *fakeAgent) Run(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
	a.mu.Lock()
	if a.live == nil {
		a.live = map[string]int{}
	}
	a.runs = append(a.runs, s)
	a.live[s.Header[0]]++
	a.all++
	a.most, a.peak = max(a.most, a.live[s.Header[0]]), max(a.peak, a.all)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.live[s.Header[0]]--
		a.all--
		a.mu.Unlock()
	}()
	r := answer("echo: " + s.Prompt.Text)
	var err error
	if a.do != nil {
		r, err = a.do(ctx, s, h)
	}
	if r.Outcome == agent.Stopped && !a.unread {
		r.Session.Data = append(r.Session.Data, line(s.Prompt.ID)...)
	}
	return r, err
}

// line is what the CLI records of a message that it has taken up.
func line(id string) string { return fmt.Sprintf(`{"uuid":%q}`+"\n", id) }

// Script runs what script says, and succeeds if there is no script.
func (a *fakeAgent) Script(ctx context.Context, s agent.Script) (agent.Scripted, error) {
	if a.script != nil {
		return a.script(ctx, s)
	}
	return agent.Scripted{Outcome: agent.Done}, nil
}

func (a *fakeAgent) specs() []agent.Spec {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]agent.Spec(nil), a.runs...)
}

func answer(text string) agent.Result {
	return agent.Result{
		Outcome: agent.Done, Text: text, Turns: 1, CostUSD: 0.01, Duration: time.Second,
		Session: agent.Session{ID: "11111111-1111-1111-1111-111111111111", Data: []byte(text), CostUSD: 0.01},
	}
}

// untilStopped is an agent that works until it is stopped, and ends as the real one does.
func untilStopped(started chan<- string) func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
	return func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		<-ctx.Done()
		r := answer("")
		r.Outcome, r.Partial = agent.Stopped, "half"
		if errors.Is(context.Cause(ctx), agent.ErrLimit) {
			r.Outcome = agent.Limit
		}
		r.Session.Data = []byte("so far")
		return r, nil
	}
}

func ids(specs []agent.Spec) []string {
	var list []string
	for _, s := range specs {
		list = append(list, fmt.Sprintf("%s %s", s.ID, s.Prompt.Text))
	}
	return list
}
