package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A task that waits for a full scope gets the reason and its place in line, once, wherever that is shown.
func TestWaitingIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits = tasks.Limits{User: 1}
	started, finish := f.running()
	f.worker()
	all, notices := []string{f.submit(f.task("a", "x"))}, []string{}
	f.next(started)
	for i, why := range []string{
		"1st in line; 1 of 1 runs busy for the same person", "2nd in line; 1 of 1 runs busy for the same person",
	} {
		id := f.submit(f.task(fmt.Sprint("b", i), "x"))
		all = append(all, id)
		f.waits(id)
		s := f.status(id)
		list, err := f.desk.List(t.Context(), tasks.Filter{Limit: 1})
		if err != nil || s.Why != why || list.Tasks[0].Why != why {
			t.Errorf("why: %q, in the list %q, %v", s.Why, list.Tasks[0].Why, err)
		}
		if told := <-f.source.waited; told != id+" Waiting: "+why {
			t.Errorf("shown: %s", told)
		}
		notices = append(notices, "Waiting: "+why)
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{Waiting: 2, Running: 1}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
	close(finish)
	for i, id := range all {
		f.ending(id)
		if got := f.events(id, agent.Notice); i > 0 && (len(got) == 0 || !strings.HasSuffix(got[0], notices[i-1])) {
			t.Errorf("events: %q", got)
		}
	}
	if c, err := f.store.Counts(t.Context()); err != nil || c != (store.Counts{}) {
		t.Errorf("counts: %+v, %v", c, err)
	}
}

// A run that waits for a person frees its places for others.
func TestQuestionsHoldNoPlace(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.policy.Limits = tasks.Limits{User: 1}
	f.talker(s)
	ids := []string{f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))}
	for range ids {
		<-s.asked // the second starts only if the first does not count
	}
	for _, id := range ids {
		if _, err := f.desk.Answer(t.Context(), id, "", "ann", "red"); err != nil {
			t.Fatal(err)
		}
		if e := f.ending(id); e.Result.Text != "ann answered: red" {
			t.Errorf("ending = %+v", e)
		}
	}
	f.stopAll()
	f.noneCounts()
}

// faulty fails as many commands as it is set to.
type faulty struct{ next atomic.Int32 }

func (*faulty) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*faulty) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *faulty) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.next.Add(-1) >= 0 {
			err := errors.New("redis is away")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// A run whose person has answered counts again, even if Redis was unreachable at that moment.
func TestPlacesAreTakenBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	client, away := f.redis(), &faulty{}
	client.AddHook(away)
	task := f.task("a", "x")
	id := f.submit(task)
	claim, err := f.open(store.Config{Redis: client}).Claim(t.Context(), id, 0, "w",
		store.Cap{Scope: "account:x", Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	k := &talk{
		Config: &Config{Log: slog.New(slog.DiscardHandler)}, claim: claim, run: t.Context(), task: task,
	}
	takeBack := k.lend()
	away.next.Store(1)
	takeBack()
	if n, err := f.redis().ZCard(t.Context(), "errand:cap:account:x").Result(); err != nil || n != 1 {
		t.Errorf("%d count, %v", n, err)
	}

	ended, end := context.WithCancel(t.Context())
	k.run = ended
	takeBack = k.lend()
	away.next.Store(1000)
	end()
	takeBack() // it ends with the run
}
