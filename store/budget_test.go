package store

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var threeDollars = []Budget{{"user:", 3}, {Fleet, 10}}

// spent settles the cost of a task.
func (h *harness) spent(s *Store, n int, cost float64, scopes ...string) []Spending {
	h.Helper()
	c := h.claim(s, h.scoped(s, n, scopes...))
	near := must(c.Spend(h.Context(), Expense{USD: cost}, threeDollars...))
	h.ok(c.End(h.Context(), nil))
	return near
}

// A reservation counts for the day of Redis' clock, in UTC, and is kept for eight days, so that what a run of a week
// has reserved is not forgotten.
func TestReservationsStandUnderTheirDay(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.scoped(s, 1, "user:u"))
		must(c.Reserve(ctx, 1, threeDollars...))
		for _, scope := range []string{"user:u", Fleet} {
			key := fmt.Sprintf("errand:spend:%d:%s", dayOf(h.today()), scope)
			if got := h.rdb.HGet(ctx, key, "r:"+c.ID()).Val(); got != "1000000" {
				h.Errorf("%s: reserved %q", key, got)
			}
			if left := h.rdb.TTL(ctx, key).Val(); left <= 7*24*time.Hour || left > 8*24*time.Hour {
				h.Errorf("%s lives for %s", key, left)
			}
		}
	})
}

func TestReserveAndSettle(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.scoped(s, 1, "user:u", "repo:r")
		c := h.claim(s, id)
		for range 2 { // the reply was lost
			if left := must(c.Reserve(ctx, 1, threeDollars...)); left != 3 {
				h.Errorf("$%.2f left, want 3", left)
			}
		}
		other := h.claim(s, h.scoped(s, 2, "user:u"))
		if left := must(other.Reserve(ctx, 1.5, threeDollars...)); left != 2 {
			h.Errorf("$%.2f left beside a reservation of 1, want 2", left)
		}
		for range 2 {
			if near := must(c.Spend(ctx, Expense{USD: 0.25}, threeDollars...)); len(near) > 0 {
				h.Errorf("near: %v", near)
			}
		}
		h.ok(c.Return(ctx, Wait{})) // interrupted
		c = h.claim(s, id)
		if got := c.Record().Cost; got != 0.25 {
			h.Errorf("its earlier run has cost $%.2f, want 0.25", got)
		}
		if left := must(c.Reserve(ctx, 1, threeDollars...)); left != 1.25 {
			h.Errorf("$%.2f left, want 3 - 0.25 - 1.5", left)
		}
		must(c.Spend(ctx, Expense{USD: 0.5}, threeDollars...))
		h.ok(c.End(ctx, nil))
		if got := must(s.Get(ctx, id)).Cost; got != 0.75 {
			h.Errorf("it has cost $%.2f, want 0.75", got)
		}
		if again := must(s.Retry(ctx, id, nil)); again.Cost != 0.75 { // what was spent is never forgotten
			h.Errorf("tried again, it has cost $%.2f", again.Cost)
		}
		if left, err := h.claim(s, h.scoped(s, 3)).Reserve(ctx, 1); left != 0 || err != nil {
			h.Errorf("without budgets: $%.2f left, %v", left, err)
		}
	})
}

// At 80 % the task that crosses the threshold should report it, once; at 100 % nothing should start or be submitted.
func TestWarnAndRefuse(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		if near := h.spent(s, 1, 2.3, "user:u"); len(near) > 0 {
			h.Errorf("at 77 %%: %v", near)
		}
		want := []Spending{{"user:u", 2.4, 3}}
		if diff := cmp.Diff(want, h.spent(s, 2, 0.1, "user:u")); diff != "" {
			h.Errorf("at 80 %%:\n%s", diff)
		}
		if near := h.spent(s, 3, 0.1, "user:u"); len(near) > 0 {
			h.Errorf("at 83 %%: %v", near)
		}
		waits := h.scoped(s, 4, "user:u")
		if left := must(h.claim(s, h.scoped(s, 5, "user:u")).Reserve(ctx, 1, threeDollars...)); left != 0.5 {
			h.Errorf("$%.2f left, want the last 0.5", left)
		}
		h.spent(s, 6, 0.5, "user:u")

		over := func(what string, err error, reserved float64) {
			h.Helper()
			var got *OverBudget
			if want := (OverBudget{Spending{"user:u", 3, 3}, reserved}); !errors.As(err, &got) || *got != want {
				h.Errorf("%s: %v, want %+v", what, err, want)
			}
		}
		before := h.dump()
		rec := task(7)
		rec.Scopes = []string{"user:u"}
		_, _, err := s.Submit(ctx, rec, threeDollars...)
		over("submit", err, 0)
		over("afford", s.Costs.Afford(ctx, rec.Scopes, threeDollars...), 0)
		if err := s.Costs.Afford(ctx, []string{"user:v"}, threeDollars...); err != nil {
			h.Errorf("another user: %v", err)
		}
		if diff := cmp.Diff(before, h.dump()); diff != "" {
			h.Errorf("the refusal changed something:\n%s", diff)
		}
		rec.ID = waits
		if _, created, err := s.Submit(ctx, rec, threeDollars...); created || err != nil {
			h.Errorf("submitted before: created %t, %v", created, err)
		}
		_, err = h.claim(s, waits).Reserve(ctx, 1, threeDollars...)
		over("reserve", err, 0.5)
		if left := must(h.claim(s, h.scoped(s, 8, "user:v")).Reserve(ctx, 1, threeDollars...)); left != 3 {
			h.Errorf("another user has $%.2f left", left)
		}
	})
}

// The fleet's budget covers every task.
func TestFleetBudget(t *testing.T) {
	inOneDay(t, func(h *harness) {
		s := h.store(Config{})
		h.spent(s, 1, 7, "user:u")
		if diff := cmp.Diff([]Spending{{Fleet, 9.5, 10}}, h.spent(s, 2, 2.5)); diff != "" {
			h.Error(diff)
		}
		h.spent(s, 3, 0.5)
		var over *OverBudget
		if _, err := h.claim(s, h.scoped(s, 4)).Reserve(h.Context(), 1, threeDollars...); !errors.As(err, &over) ||
			over.Scope != Fleet {
			h.Errorf("reserve = %v, want the fleet's budget", err)
		}
		if err := s.Costs.Afford(h.Context(), nil, threeDollars...); !errors.As(err, &over) || over.Scope != Fleet {
			h.Errorf("afford = %v, want the fleet's budget", err)
		}
	})
}

// If other runs reserved the rest, a task waits until they return some. Reservations never exceed the budget.
func TestReservationsNeverExceed(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var claims []*Claim
		for n := range 12 {
			claims = append(claims, h.claim(s, h.scoped(s, n, "user:u")))
		}
		var mu sync.Mutex
		var got []*Claim
		var wg sync.WaitGroup
		for _, c := range claims {
			wg.Go(func() {
				_, err := c.Reserve(ctx, 0.7, threeDollars...)
				mu.Lock()
				defer mu.Unlock()
				var over *OverBudget
				switch {
				case err == nil:
					got = append(got, c)
				case !errors.As(err, &over) || over.Spent != 0 || over.Reserved > 3:
					h.Errorf("reserve = %v", err)
				}
			})
		}
		wg.Wait()
		if len(got) != 4 {
			h.Fatalf("%d reservations of $0.70 under $3.00, want 4", len(got))
		}
		must(got[0].Spend(ctx, Expense{USD: 0.1}, threeDollars...))
		for _, c := range claims {
			if c != got[0] && c != got[1] && c != got[2] && c != got[3] {
				if left := must(c.Reserve(ctx, 0.7, threeDollars...)); math.Abs(left-0.8) > 1e-9 {
					h.Errorf("$%.2f left, want 3 - 0.1 - 2.1", left)
				}
				return
			}
		}
	})
}

func TestReservationsDoNotLeak(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		ways := map[string]func(c *Claim){
			"settled":  func(c *Claim) { must(c.Spend(ctx, Expense{USD: 0}, threeDollars...)) },
			"ended":    func(c *Claim) { h.ok(c.End(ctx, nil)) },
			"returned": func(c *Claim) { h.ok(c.Return(ctx, Wait{Counts: true})) },
			"crashed":  func(c *Claim) { h.crash(c); h.takeover(s, c) },
		}
		if h.mini != nil { // only its clock can be set
			ways["midnight"] = func(c *Claim) {
				h.mini.SetTime(time.Now().Add(24 * time.Hour))
				must(c.Reserve(ctx, 1, threeDollars...))
				h.ok(c.End(ctx, nil))
			}
		}
		n := 0
		for way, leave := range ways {
			n++
			c := h.claim(s, h.scoped(s, n, "user:u"))
			must(c.Reserve(ctx, 1, threeDollars...))
			leave(c)
			for key, fields := range h.dump() {
				if hash, ok := fields.(map[string]string); ok && hash["r:"+c.ID()] != "" {
					h.Errorf("%s: %s still holds a reservation", way, key)
				}
			}
		}
	})
}

// A new day starts at zero. A run over midnight is settled on the day it ends.
func TestBudgetsAreOfADay(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		ctx, s, midday := h.Context(), h.store(Config{}), time.Date(2040, 1, 2, 12, 0, 0, 0, time.UTC)
		h.mini.SetTime(midday)
		over := h.claim(s, h.scoped(s, 1, "user:u"))
		must(over.Reserve(ctx, 1, threeDollars...))
		h.spent(s, 2, 3, "user:u")
		if _, err := h.claim(s, h.scoped(s, 3, "user:u")).Reserve(ctx, 1, threeDollars...); err == nil {
			h.Error("a used-up budget gave more")
		}
		h.mini.SetTime(midday.AddDate(0, 0, 1))
		must(over.Spend(ctx, Expense{USD: 0.5}, threeDollars...))
		if left := must(h.claim(s, h.scoped(s, 4, "user:u")).Reserve(ctx, 1, threeDollars...)); left != 2.5 {
			h.Errorf("$%.2f left of the new day, want 2.5", left)
		}
		for _, key := range must(h.rdb.Keys(ctx, "errand:spend:*").Result()) {
			if ttl := h.rdb.TTL(ctx, key).Val(); ttl <= 7*24*time.Hour {
				h.Errorf("%s lives for %s", key, ttl)
			}
		}
	})
}

// Days follow Redis' clock and begin at midnight UTC.
func TestDayByRedisClock(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		s := h.store(Config{})
		h.mini.SetTime(time.Date(2040, 1, 2, 23, 59, 59, 0, time.UTC))
		h.spent(s, 1, 3, "user:u")
		rec := task(2)
		rec.Scopes = []string{"user:u"}
		if _, _, err := s.Submit(h.Context(), rec, threeDollars...); err == nil {
			h.Error("submitted before midnight")
		}
		h.mini.SetTime(time.Date(2040, 1, 3, 0, 0, 0, 0, time.UTC))
		if _, _, err := s.Submit(h.Context(), rec, threeDollars...); err != nil {
			h.Errorf("after midnight: %v", err)
		}
	})
}

// Costs should be recorded without a budget, in their scopes only.
func TestSpentToday(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.scoped(s, 1, "user:u"))
		must(c.Reserve(ctx, 2, threeDollars...))
		if got := must(s.Costs.Spent(ctx, Fleet)); got != 0 {
			h.Errorf("$%.2f spent by a reservation", got)
		}
		must(c.Spend(ctx, Expense{USD: 1.25}))
		must(h.claim(s, h.scoped(s, 2, "user:v")).Spend(ctx, Expense{USD: 0.5}))
		for scope, want := range map[string]float64{Fleet: 1.75, "user:u": 1.25, "user:w": 0} {
			if got := must(s.Costs.Spent(ctx, scope)); got != want {
				h.Errorf("%s has spent $%.2f, want %.2f", scope, got, want)
			}
		}
	})
}
