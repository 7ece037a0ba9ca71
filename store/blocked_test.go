package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// ask claims a task with its valid delivery.
func (h *harness) ask(s *Store, id string, caps ...Cap) (*Claim, error) {
	h.Helper()
	rec, err := s.Get(h.Context(), id)
	if err != nil {
		return nil, err
	}
	return s.Claim(h.Context(), id, rec.Delivery, "w", caps...)
}

// named checks which deliveries are to be made now.
func (h *harness) named(s *Store, when string, want ...string) {
	h.Helper()
	var got []string
	for _, d := range must(s.Ready(h.Context(), 100)) {
		if got = append(got, d.ID); d.Called != h.rdb.HExists(h.Context(), "errand:task:"+d.ID, "line").Val() {
			h.Errorf("%s: %+v", when, d)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("%s: deliveries:\n%s", when, diff)
	}
}

// A task that is refused because its thread is busy has no delivery until the thread is free, and then one, whichever
// step frees the thread.
func TestThreadCallsTheNext(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for way, free := range map[string]func(c *Claim){
			"end":              func(c *Claim) { h.ok(c.End(ctx, nil)); h.named(s, "end"); h.ok(c.Release(ctx)) },
			"given up":         func(c *Claim) { h.crash(c); h.takeover(s, c); h.withdraw(s, c.ID()) },
			"returned for now": func(c *Claim) { h.ok(c.Return(ctx, Wait{})); h.withdraw(s, c.ID()) },
			"returned for later": func(c *Claim) {
				h.ok(c.Return(ctx, Wait{At: time.Now().Add(time.Hour)}))
				h.named(s, "the order of a thread never changes")
				must(s.EndWaiting(ctx, c.ID(), nil))
			},
			"its claim expires": func(c *Claim) {
				h.ok(c.End(ctx, nil)) // and its worker dies before the release
				h.crash(c)
				h.ok(s.Wake(ctx, task(2).ID, task(3).ID))
			},
		} {
			h.empty()
			first := h.submit(s, 1)
			c := h.claim(s, first)
			second, third := h.submit(s, 2), h.submit(s, 3)
			for _, id := range []string{second, third} {
				if b := must(s.Get(ctx, id)).Blocked; b.Place == 0 || b.Scope != "" {
					h.Errorf("%s: submitted behind a run: %+v", way, b)
				}
				if _, err := h.ask(s, id); !errors.Is(err, ErrBusy) {
					h.Errorf("%s: claim = %v", way, err)
				}
			}
			h.ok(s.Wake(ctx, second, third))
			h.named(s, way+": the thread is busy")
			free(c)
			h.named(s, way, second)
			h.named(s, way+" again")
			if b := must(s.Get(ctx, second)).Blocked; b != (Blocked{}) {
				h.Errorf("%s: %+v", way, b)
			}
			if _, err := h.ask(s, second); err != nil {
				h.Errorf("%s: the next cannot start: %v", way, err)
			}
		}
	})
}

// A task that comes late, but is older than the run of its thread, is the first when that run's worker dies.
func TestDeadWorkerCallsTheOlder(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		c := h.claim(s, h.submit(s, 5))
		older := h.submit(s, 2)
		h.crash(c)
		h.takeover(s, c)
		h.named(s, "its worker died", older, c.ID())
		if _, err := h.ask(s, c.ID()); !errors.Is(err, ErrBusy) {
			h.Errorf("claim = %v", err)
		}
		must(h.ask(s, older))
	})
}

// A task that is refused while the last run of its thread is posting has no delivery, whoever looks.
func TestBlockedByAnEndedRun(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.End(ctx, nil))
		id := h.submit(s, 2)
		if _, err := h.ask(s, id); !errors.Is(err, ErrBusy) {
			h.Errorf("claim = %v", err)
		}
		h.ok(s.Wake(ctx, id))
		h.named(s, "it is blocked")
		if b := must(s.Get(ctx, id)).Blocked; b.Place != 1 {
			h.Errorf("it is behind one: %+v", b)
		}
		h.ok(c.Release(ctx))
		h.named(s, "its turn", id)
	})
}

// withdraw ends a waiting task after its delivery was made.
func (h *harness) withdraw(s *Store, id string) {
	h.Helper()
	h.named(s, "waits again", id)
	must(s.EndWaiting(h.Context(), id, nil))
}

// A task that finds a limit reached has no delivery until a place is free for it, whichever step frees the place, and
// those that are submitted behind it have none before.
func TestPlaceCallsTheFirst(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		caps := []Cap{{"repo:", 2}}
		for way, c := range map[string]struct {
			free func(a, b *Claim, line []string)
			want []int // of the line
		}{
			"end":    {func(a, _ *Claim, _ []string) { h.ok(a.End(ctx, nil)) }, []int{0}},
			"return": {func(a, _ *Claim, _ []string) { h.ok(a.Return(ctx, Wait{At: time.Now().Add(time.Hour)})) }, []int{0}},
			"lend":   {func(a, _ *Claim, _ []string) { h.ok(a.Lend(ctx)) }, []int{0}},
			"two at once": {func(a, b *Claim, _ []string) {
				h.ok(a.End(ctx, nil))
				h.ok(b.End(ctx, nil))
			}, []int{0, 1}},
			"a lease ends": {func(a, _ *Claim, _ []string) {
				h.ok(h.rdb.ZAdd(ctx, "errand:cap:repo:a", redis.Z{Score: 1, Member: a.ID()}).Err())
				h.ok(s.CallUp(ctx, caps...))
			}, []int{0}},
			"a higher cap":    {func(*Claim, *Claim, []string) { h.ok(s.CallUp(ctx, Cap{"repo:", 3})) }, []int{0}},
			"a lower cap":     {func(a, _ *Claim, _ []string) { h.ok(a.End(ctx, nil)); h.full(s, 3, Cap{"repo:", 1}) }, nil},
			"no cap any more": {func(*Claim, *Claim, []string) { h.ok(s.CallUp(ctx)) }, []int{0, 1, 2}},
			"the called one is cancelled": {func(a, _ *Claim, line []string) {
				h.ok(a.End(ctx, nil))
				h.withdraw(s, line[0])
			}, []int{1}},
			"one is cancelled": {func(_, _ *Claim, line []string) { must(s.EndWaiting(ctx, line[0], nil)) }, nil},
			"one is amended": {func(_, _ *Claim, line []string) {
				rec := task(4)
				rec.Scopes = []string{"repo:b"}
				h.ok(s.Amend(ctx, rec, "1"))
			}, []int{1}},
			"its line is lost": {func(_, _ *Claim, line []string) {
				h.ok(h.rdb.Del(ctx, "errand:line:repo:a").Err())
				h.ok(s.Wake(ctx, line[1]))
				if place := must(s.Get(ctx, line[1])).Blocked.Place; place != 1 {
					h.Errorf("it is number %d in the new line", place)
				}
			}, nil},
		} {
			h.empty()
			a, b := must(h.ask(s, h.scoped(s, 1, "repo:a"), caps...)), must(h.ask(s, h.scoped(s, 2, "repo:a"), caps...))
			line := []string{h.scoped(s, 3, "repo:a")}
			h.full(s, 3, caps...)
			for n := 4; n < 6; n++ {
				line = append(line, h.scoped(s, n, "channel:x", "repo:a"))
				want := Blocked{"repo:a", 2, 2, n - 2}
				if got := must(s.Get(ctx, task(n).ID)).Blocked; got != want {
					h.Errorf("%s: submitted behind a line: %+v, want %+v", way, got, want)
				}
			}
			h.ok(s.Wake(ctx, line...))
			h.ok(s.CallUp(ctx, caps...))
			h.named(s, way+": all places are taken")
			c.free(a, b, line)
			var want []string
			for _, n := range c.want {
				want = append(want, line[n])
			}
			h.named(s, way, want...)
		}
	})
}

// full lets the n-th task ask for a place that is not free.
func (h *harness) full(s *Store, n int, caps ...Cap) {
	h.Helper()
	var full *Full
	if _, err := h.ask(s, task(n).ID, caps...); !errors.As(err, &full) {
		h.Errorf("claim = %v, want it to be full", err)
	}
}

// Each task that starts under a raised cap calls the next, until all places are taken.
func TestRaisedCapIsUsedUp(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		low, high := Cap{"repo:", 1}, Cap{"repo:", 3}
		c := must(h.ask(s, h.scoped(s, 1, "repo:a"), low))
		var line []string
		for n := 2; n < 6; n++ {
			line = append(line, h.scoped(s, n, "repo:a"))
			if n == 2 {
				h.full(s, n, low)
			}
		}
		h.ok(c.End(ctx, nil))
		h.named(s, "one place", line[0])
		must(h.ask(s, line[0], high))
		h.named(s, "the new places", line[1], line[2])
		for _, id := range line[1:3] {
			must(h.ask(s, id, high))
		}
		h.named(s, fmt.Sprint("all of ", high.Max))
	})
}

// A task that cannot come for a place does not delay those behind it, and one that is not due is in no line.
func TestTasksThatCannotComeHoldNoPlace(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s, limit := h.Context(), h.store(Config{}), Cap{"user:", 1}
		run := must(h.ask(s, h.scoped(s, 1, "user:u"), limit))
		h.scoped(s, 2, "user:u")
		h.full(s, 2, limit)
		submit := func(n int, change func(*Record)) string {
			rec := task(n)
			rec.Thread, rec.Scopes = fmt.Sprint("t", n), []string{"user:u"}
			change(&rec)
			rec, _, err := s.Submit(ctx, rec)
			h.ok(err)
			return rec.ID
		}
		elsewhere := submit(3, func(rec *Record) { rec.Pool = "gpu" })
		paused := submit(4, func(rec *Record) { rec.Class = "interactive" })
		h.ok(h.rdb.HSet(ctx, "errand:paused", "interactive", "1 x").Err())
		later := submit(5, func(rec *Record) { rec.At = time.Now().Add(time.Hour) })
		behind := submit(6, func(rec *Record) { rec.Thread, rec.At = "t5", time.Now().Add(time.Hour) })
		for _, id := range []string{later, behind} {
			if b := must(s.Get(ctx, id)).Blocked; b.Scope != "" {
				h.Errorf("it is not due: %+v", b)
			}
		}
		runnable := h.scoped(s, 7, "user:u")
		h.ok(run.End(ctx, nil))
		h.named(s, "a place is free", task(2).ID, paused)
		must(s.EndWaiting(ctx, later, nil)) // the next of its thread is not due either
		run = must(h.ask(s, task(2).ID, limit))
		h.ok(run.End(ctx, nil))
		h.named(s, "a place is free again", elsewhere, runnable)
		must(h.ask(s, runnable, limit))
		h.full(s, 3, limit) // its pool has a worker now
	})
}

// A line keeps its cap while the first of it was called and has no slot.
func TestLineKeepsItsCap(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s, caps := h.Context(), h.store(Config{}), Cap{"repo:", 3}
		var runs []*Claim
		for n := 1; n < 4; n++ {
			runs = append(runs, must(h.ask(s, h.scoped(s, n, "repo:a"), caps)))
		}
		called := h.scoped(s, 4, "repo:a")
		h.full(s, 4, caps)
		next := h.scoped(s, 5, "repo:a")
		h.scoped(s, 6, "repo:a")
		h.ok(runs[0].End(ctx, nil))
		h.named(s, "a place is free", called)
		h.ok(s.NoSlot(ctx, called, must(s.Get(ctx, called)).Delivery, "no slot"))
		h.ok(runs[1].End(ctx, nil))
		h.named(s, "another place is free", next)
		if got := must(s.Get(ctx, h.scoped(s, 7, "repo:a"))).Blocked; got != (Blocked{"repo:a", 1, 3, 4}) {
			h.Errorf("a new task: %+v", got)
		}
	})
}

// A task that is called and cannot come, because its pool has no worker, takes the place if a worker asks for it after
// all.
func TestClaimOfATaskThatCannotCome(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		must(h.ask(s, h.scoped(s, 1, "repo:a"), Cap{"repo:", 1}))
		h.scoped(s, 2, "repo:a")
		h.full(s, 2, Cap{"repo:", 1})
		last := h.scoped(s, 3, "repo:a")
		h.ok(h.rdb.Del(ctx, "errand:pool:default").Err())
		must(h.ask(s, last, Cap{"repo:", 2}))
	})
}
