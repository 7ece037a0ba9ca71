package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// endedTask ends a task as a worker does that then dies, and returns its lease.
func endedTask(f *fleet, thread string) (id string, take func() store.Post) {
	f.Helper()
	id = f.submit(f.task(thread, "x"))
	c, err := f.store.Claim(f.Context(), id, 0, "w")
	if err != nil {
		f.Fatal(err)
	}
	e := tasks.Ending{Kind: tasks.Answered, At: time.Now(), Result: answer("the answer")}
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
	w := f.idle()
	id, take := endedTask(f, "a")
	refused := &tasks.UnpostedError{Why: "Slack says not_in_channel", Err: errors.New("no")}
	f.source.fail = func(int) error { return refused }
	w.outbox.Send(t.Context(), take(), nil)
	const said = "answer not posted yet: Slack says not_in_channel"
	s := f.status(id)
	if s.Posted || s.Unposted != said || s.Headline(time.Now()).Detail != said {
		t.Errorf("status: %+v", s)
	}
	f.source.fail = nil
	w.outbox.Send(t.Context(), take(), nil)
	if s := f.status(id); !s.Posted || s.Unposted != "" {
		t.Errorf("status: %+v", s)
	}
}

// A place that is gone ends the attempts, and the status keeps why.
func TestUndeliveredIsSaid(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	id, take := endedTask(f, "a")
	gone := &tasks.UnpostedError{Why: "its thread is gone", Final: true, Err: errors.New("no")}
	f.source.fail = func(int) error { return gone }
	w.outbox.Send(t.Context(), take(), nil)
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
		w.outbox.Send(t.Context(), take(), nil)
		if s := f.status(id); !s.Posted || s.Unposted != "" {
			t.Errorf("status: %+v", s)
		}
		if u, err := f.store.Outbox.Backlog(t.Context()); err != nil || u.Endings != 0 {
			t.Errorf("backlog: %+v, %v", u, err)
		}
	}
	w.outbox.Send(t.Context(), take(), nil)
	if rec, err := f.store.Get(t.Context(), id); err != nil || rec.Outbox != -1 {
		t.Errorf("outbox %d, %v", rec.Outbox, err)
	}
	f.equal("noted", strings.Join(*noted, " "), id)
}

// An answer that people have does not count as undelivered, if its place is gone before the status is up to date.
func TestPlaceIsGoneBehindTheAnswer(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle()
	id, take := endedTask(f, "a")
	left := &tasks.UnpostedError{Why: "Slack says internal_error", Shown: true, Err: errors.New("no")}
	gone := &tasks.UnpostedError{Why: "its thread is gone", Final: true, Err: errors.New("no")}
	for _, problem := range []error{left, gone} {
		f.source.fail = func(int) error { return problem }
		w.outbox.Send(t.Context(), take(), nil)
	}
	if s := f.status(id); !s.Posted || s.Unposted != "" {
		t.Errorf("status: %+v", s)
	}
	if u, err := f.store.Outbox.Backlog(t.Context()); err != nil || u.Endings != 0 || u.GivenUp != 0 {
		t.Errorf("backlog: %+v, %v", u, err)
	}
}
