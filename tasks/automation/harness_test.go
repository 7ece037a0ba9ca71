package automation

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/inbox"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// fleet is some front doors on one real Redis, with a clock that the test sets. The test plays the worker.
type fleet struct {
	taskstest.Worker
	redis string
	rdb   *redis.Client
	doors []*door

	outcomes chan outcome // of requests to hooks, in their order

	mu  sync.Mutex
	now time.Time
	new []string // IDs of the tasks that a submission created
}

// outcome is what became of a stored request.
type outcome struct {
	said string
	err  error
}

// observed tells the outcomes of an inbox.
type observed struct {
	*inbox.Inbox
	outcomes chan outcome
}

func (o observed) Handle(source string, h intake.Handler) {
	o.Inbox.Handle(source, func(ctx context.Context, e intake.Event) (string, error) {
		said, err := h(ctx, e)
		o.outcomes <- outcome{said, err}
		return said, err
	})
}

// door is a front door whose clock may be wrong.
type door struct {
	*Source
	desk   *desk.Desk
	skew   time.Duration
	server *httptest.Server // of hooks
}

func newFleet(t *testing.T, at time.Time, policy rights.Policy) *fleet {
	t.Helper()
	f := &fleet{Worker: taskstest.Worker{T: t}, redis: redistest.Start(t), now: at}
	f.outcomes = make(chan outcome, 100)
	f.Store, f.Desk = f.connect(policy)
	return f
}

// connect opens a separate connection, as another process has it.
func (f *fleet) connect(policy rights.Policy) (*store.Store, *desk.Desk) {
	f.Helper()
	rdb := redistest.Client(f, f.redis)
	f.rdb = rdb
	s, err := store.New(store.Config{Redis: rdb})
	if err != nil {
		f.Fatal(err)
	}
	return s, desk.New(s, queue.New(s, rdb, time.Hour), policy, nil)
}

// start adds a front door with schedules.
func (f *fleet) start(policy rights.Policy, skew time.Duration, list ...Automation) *door {
	f.Helper()
	for i := range list {
		list[i].Profile, list[i].Times = agent.Read, times(list[i].When)
	}
	return f.open(policy, skew, Schedule, list...)
}

// times reads the fields of cron, behind which a time zone may stand.
func times(when string) cron.Schedule {
	fields, zone := when, "UTC"
	if words := strings.Fields(when); len(words) == 6 {
		fields, zone = strings.Join(words[:5], " "), words[5]
	}
	all, err := cron.ParseStandard("CRON_TZ=" + zone + " " + fields)
	if err != nil {
		panic(err)
	}
	return all
}

// open adds a front door.
func (f *fleet) open(policy rights.Policy, skew time.Duration, kind Kind, list ...Automation) *door {
	f.Helper()
	s, own := f.connect(policy)
	d := &door{skew: skew, desk: own.Metered(func(t tasks.Task, r desk.Receipt) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.New {
			f.new = append(f.new, t.ID)
		}
	})}
	requests := inbox.New(inbox.Config{Queue: inbox.Incoming, AtOnce: 1, Redis: f.rdb})
	var err error
	if d.Source, err = New(kind, Config{
		Automations: list, Memory: s.Memos, Limiter: s.Memos, Inbox: observed{requests, f.outcomes},
		Now: func() time.Time { return f.clock().Add(skew) },
	}); err != nil {
		f.Fatal(err)
	}
	if kind == Hook {
		mux := http.NewServeMux()
		if err := d.Listen(f.Context(), mux, d.desk); err != nil {
			f.Fatal(err)
		}
		d.server = httptest.NewServer(mux)
		f.Cleanup(d.server.Close)
		if len(f.doors) == 0 { // one interprets all, so that they come in order
			stop, err := inbox.All{requests}.Serve()
			if err != nil {
				f.Fatal(err)
			}
			f.Cleanup(stop)
		}
	}
	f.doors = append(f.doors, d)
	return d
}

func (f *fleet) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// look lets all front doors look at once, at a time.
func (f *fleet) look(at time.Time) {
	f.Helper()
	f.mu.Lock()
	f.now = at
	f.mu.Unlock()
	var all sync.WaitGroup
	for _, d := range f.doors {
		all.Go(func() { d.look(f.Context(), d.desk) })
	}
	all.Wait()
}

// created returns the tasks that were created since the last call.
func (f *fleet) created() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.new
	f.new = nil
	return list
}

// end ends a task that has not started.
func (f *fleet) end(id string, kind tasks.EndingKind) {
	f.Helper()
	if ok, err := record.EndWaiting(f.Context(), f.Store, id, tasks.Ending{Kind: kind, At: f.clock()}); !ok ||
		err != nil {
		f.Fatal(ok, err)
	}
}

// shown returns the state of the only schedule.
func (f *fleet) shown() tasks.Schedule {
	f.Helper()
	list, err := f.doors[0].Schedules(f.Context())
	if err != nil || len(list) != 1 {
		f.Fatal(list, err)
	}
	return list[0]
}

func utc(text string) time.Time {
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		panic(err)
	}
	return at
}

// countingMemory fails, and records when it is read.
type countingMemory struct{ at []time.Time }

var errMemory = errors.New("no memory")

func (m *countingMemory) Memo(context.Context, string) (json.RawMessage, error) {
	m.at = append(m.at, time.Now())
	return nil, errMemory
}

func (m *countingMemory) ChangeMemo(context.Context, string, func(json.RawMessage) (json.RawMessage, error)) error {
	return errMemory
}
