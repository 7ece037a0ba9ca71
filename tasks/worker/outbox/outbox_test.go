package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/sources"
)

// fleet is a desk on a real Redis with a source whose reports fail as the test says.
type fleet struct {
	*testing.T
	store  *store.Store
	desk   *desk.Desk
	rdb    *redis.Client
	source *fakeSource
	n      int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{T: t, rdb: redistest.Client(t, redistest.Start(t)), source: &fakeSource{}}
	var err error
	if f.store, err = store.New(store.Config{Redis: f.rdb}); err != nil {
		t.Fatal(err)
	}
	f.put("errand:epoch", "since", "0") // the data is older than the tasks, so that none is in doubt
	f.put("errand:epoch", "process", "")
	f.desk = desk.New(f.store, queue.New(f.store, f.rdb, time.Hour), rights.Policy{}, nil)
	return f
}

// poster returns the poster of a worker with a source.
func (f *fleet) poster(source tasks.Source, change ...func(*Config)) *Poster {
	log := slog.New(slog.NewTextHandler(f.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	c := Config{
		Store: f.store, Sources: &sources.Set{All: []tasks.Source{source}},
		PullRequests: none{}, Meter: unmetered{}, Log: log,
	}
	for _, change := range change {
		change(&c)
	}
	return New(c)
}

// noting is a poster, and the tasks whose endings it has noted.
func (f *fleet) noting() (w *Poster, noted *[]string) {
	noted = new([]string)
	w = f.poster(f.source, func(c *Config) {
		c.Ended = func(_ context.Context, task tasks.Task, _ time.Time) error {
			*noted = append(*noted, task.ID)
			return nil
		}
	})
	return w, noted
}

// submit creates a task; each is one microsecond later than the one before.
func (f *fleet) submit(thread string) string {
	f.Helper()
	f.n++
	t := tasks.Task{
		ID: tasks.NewID(time.UnixMicro(1_700_000_000_000_000+int64(f.n)), "fake", thread), Source: "fake", Kind: "test",
		Thread: "fake/" + thread, Class: tasks.Interactive, Profile: agent.Read, Actor: "somebody", Prompt: "x",
		Reply: new(tasks.Reply),
	}
	if _, err := f.desk.Submit(f.Context(), t); err != nil {
		f.Fatal(err)
	}
	return t.ID
}

func (f *fleet) status(id string) tasks.Status {
	f.Helper()
	s, err := f.desk.Status(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fleet) put(key, field, value string) {
	f.Helper()
	if err := f.rdb.HSet(f.Context(), key, field, value).Err(); err != nil {
		f.Fatal(err)
	}
}

// fakeSource counts the final messages that were posted.
type fakeSource struct {
	tasks.Source

	fail   func(attempt int) error // of Close
	tries  int
	posted int
}

func (*fakeSource) Name() string { return "fake" }

func (s *fakeSource) Open(context.Context, tasks.Task) (tasks.Report, error) {
	return fakeReport{s}, nil
}

type fakeReport struct{ s *fakeSource }

func (fakeReport) Update(agent.Event) {}

func (r fakeReport) Close(context.Context, tasks.Ending) error {
	r.s.tries++
	if r.s.fail != nil {
		if err := r.s.fail(r.s.tries); err != nil {
			return err
		}
	}
	r.s.posted++
	return nil
}

// none is work without pull requests.
type none struct{}

func (none) OpenDue(context.Context, tasks.Task, *tasks.Ending) error { return nil }

// unmetered is a meter that hears nothing.
type unmetered struct{}

func (unmetered) Ended(tasks.Task, tasks.Ending, time.Duration) {}

// A retry between the lease of a final message and the read of its record takes the message back.
func TestRetryBeforeItsMessageIsRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.poster(f.source, func(c *Config) {
		c.Ended = func(_ context.Context, task tasks.Task, _ time.Time) error {
			t.Errorf("%s: noted", task.ID)
			return nil
		}
	})
	id := f.submit("a")
	c, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	e := tasks.Ending{Kind: tasks.Answered, At: time.Now(), Result: agent.Result{Outcome: agent.Done, Text: "the answer"}}
	if err := c.End(t.Context(), e.Encode()); err != nil {
		t.Fatal(err)
	}
	p, ok, err := f.store.Outbox.Take(t.Context(), id)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := f.desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.Send(t.Context(), p, nil)
	if f.source.posted > 0 {
		t.Error("posted")
	}
}

// An absorbed task that is retried before the common message is posted has not ended with it.
func TestRetriedTaskIsNotNoted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w, noted := f.noting()
	first, second := f.submit("a"), f.submit("a")
	c, err := f.store.Claim(t.Context(), first, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.Take(t.Context(), false, nil); err != nil || !ok {
		t.Fatal(ok, err)
	}
	e := tasks.Ending{Kind: tasks.Answered, At: time.Now(), Covers: []string{second}}.Encode()
	if err := c.EndWith(t.Context(), e, store.Covered{IDs: []string{second}, Ending: e}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.desk.Retry(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.Post(t.Context(), first, nil)
	if !slices.Equal(*noted, []string{first}) {
		t.Errorf("noted %q", *noted)
	}
}

// endedTask ends a task as a worker does that then dies, and returns its lease.
func endedTask(f *fleet, thread string) (id string, take func() store.Post) {
	f.Helper()
	id = f.submit(thread)
	c, err := f.store.Claim(f.Context(), id, 0, "w")
	if err != nil {
		f.Fatal(err)
	}
	e := tasks.Ending{Kind: tasks.Answered, At: time.Now(), Result: agent.Result{Outcome: agent.Done, Text: "the answer"}}
	if err := c.End(f.Context(), e.Encode()); err != nil {
		f.Fatal(err)
	}
	return id, func() store.Post {
		f.Helper()
		f.due(id)
		p, ok, err := f.store.Outbox.Take(f.Context(), id)
		if err != nil || !ok {
			f.Fatal(ok, err)
		}
		return p
	}
}

// due lets an outbox item be taken at once.
func (f *fleet) due(id string) {
	f.Helper()
	for _, key := range []string{"errand:outbox", "errand:outbox:" + tasks.SourceOf(id)} {
		if err := f.rdb.ZAddXX(f.Context(), key, redis.Z{Score: 1, Member: id}).Err(); err != nil {
			f.Fatal(err)
		}
	}
}

// A final message that its place refuses stays in the outbox, and every view says so, until it is posted.
func TestUnpostedIsSaid(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.poster(f.source)
	id, take := endedTask(f, "a")
	refused := &tasks.UnpostedError{Why: "Slack says not_in_channel", Err: errors.New("no")}
	f.source.fail = func(int) error { return refused }
	w.Send(t.Context(), take(), nil)
	const said = "answer not posted yet: Slack says not_in_channel"
	s := f.status(id)
	if s.Posted || s.Unposted != said || s.Headline(time.Now()).Detail != said {
		t.Errorf("status: %+v", s)
	}
	f.source.fail = nil
	w.Send(t.Context(), take(), nil)
	if s := f.status(id); !s.Posted || s.Unposted != "" {
		t.Errorf("status: %+v", s)
	}
}

// A place that is gone ends the attempts, and the status keeps why.
func TestUndeliveredIsSaid(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.poster(f.source)
	id, take := endedTask(f, "a")
	gone := &tasks.UnpostedError{Why: "its thread is gone", Final: true, Err: errors.New("no")}
	f.source.fail = func(int) error { return gone }
	w.Send(t.Context(), take(), nil)
	if s := f.status(id); s.Posted || s.Unposted != "answer not delivered: its thread is gone" {
		t.Errorf("status: %+v", s)
	}
	left, err := f.store.Outbox.Backlog(t.Context())
	if err != nil || left.Endings != 0 || left.GivenUp != 1 || left.LastGivenUp != id {
		t.Errorf("backlog: %+v, %v", left, err)
	}
}

// While only the status is left, the task counts as answered: its ending is noted once.
func TestOnlyTheStatusIsLeft(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w, noted := f.noting()
	id, take := endedTask(f, "a")
	left := &tasks.UnpostedError{Why: "Slack says internal_error", Shown: true, Err: errors.New("no")}
	f.source.fail = func(n int) error {
		if n < 3 {
			return left
		}
		return nil
	}
	for range 2 {
		w.Send(t.Context(), take(), nil)
		if s := f.status(id); !s.Posted || s.Unposted != "" {
			t.Errorf("status: %+v", s)
		}
		if u, err := f.store.Outbox.Backlog(t.Context()); err != nil || u.Endings != 0 {
			t.Errorf("backlog: %+v, %v", u, err)
		}
	}
	w.Send(t.Context(), take(), nil)
	if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Outbox != -1 {
		t.Errorf("outbox %d, %v", rec.Outbox, err)
	}
	if !slices.Equal(*noted, []string{id}) {
		t.Errorf("noted %q", *noted)
	}
}

// An answer that people have does not count as undelivered, if its place is gone before the status is up to date.
func TestPlaceIsGoneBehindTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.poster(f.source)
	id, take := endedTask(f, "a")
	left := &tasks.UnpostedError{Why: "Slack says internal_error", Shown: true, Err: errors.New("no")}
	gone := &tasks.UnpostedError{Why: "its thread is gone", Final: true, Err: errors.New("no")}
	for _, problem := range []error{left, gone} {
		f.source.fail = func(int) error { return problem }
		w.Send(t.Context(), take(), nil)
	}
	if s := f.status(id); !s.Posted || s.Unposted != "" {
		t.Errorf("status: %+v", s)
	}
	if u, err := f.store.Outbox.Backlog(t.Context()); err != nil || u.Endings != 0 || u.GivenUp != 0 {
		t.Errorf("backlog: %+v, %v", u, err)
	}
}

// A final message is left to a worker that is set up for its source, without an attempt.
func TestMessageWithoutTheSource(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	other := f.poster(renamed{f.source})
	id := f.submit("a")
	e := tasks.Ending{Kind: tasks.Cancelled, At: time.Now()}
	if _, err := record.EndWaiting(t.Context(), f.store, id, e); err != nil {
		t.Fatal(err)
	}
	other.PostDue(t.Context())
	other.Wait()
	if p, ok, err := f.store.Outbox.Take(t.Context(), id); err != nil || !ok || p.Attempt != 1 {
		t.Errorf("%+v, %t, %v", p, ok, err)
	}
}

// nowhere is a source that cannot post from this worker.
type nowhere struct{ tasks.Source }

func (nowhere) Open(context.Context, tasks.Task) (tasks.Report, error) {
	return nil, fmt.Errorf("open: %w", tasks.ErrNotHere)
}

// unwell is a source whose service fails.
type unwell struct{ tasks.Source }

func (unwell) Open(context.Context, tasks.Task) (tasks.Report, error) {
	return nil, errors.New("the service is away")
}

// A final message that cannot be posted is given up after many attempts and a day: workers that cannot post it use up
// attempts, and after an outage of a day the worker that can may be the last one to start.
func TestMessageThatCannotBePosted(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(tasks.Source) tasks.Source{
		"no such source": func(s tasks.Source) tasks.Source { return renamed{s} },
		"no such place":  func(s tasks.Source) tasks.Source { return nowhere{s} },
		"failure":        func(s tasks.Source) tasks.Source { return unwell{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.poster(source(f.source))
			id := f.submit("a")
			e := tasks.Ending{Kind: tasks.Cancelled, At: time.Now()}
			if _, err := record.EndWaiting(t.Context(), f.store, id, e); err != nil {
				t.Fatal(err)
			}
			waits := func(age time.Duration, attempts int) bool {
				t.Helper()
				f.put("errand:task:"+id, "outbox", strconv.Itoa(attempts))
				f.put("errand:task:"+id, "ended", strconv.FormatInt(time.Now().Add(-age).UnixMicro(), 10))
				f.due(id)
				w.PostDue(t.Context())
				w.Wait()
				return f.rdb.ZScore(t.Context(), "errand:outbox", id).Err() == nil
			}
			if !waits(time.Hour, 400) || !waits(25*time.Hour, 0) {
				t.Error("given up too early")
			}
			if waits(25*time.Hour, 400) {
				t.Error("not given up")
			}
		})
	}
}

// renamed is a source with another name.
type renamed struct{ tasks.Source }

func (renamed) Name() string { return "other" }
