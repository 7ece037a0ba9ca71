package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// costs returns all costs that are kept, the greatest first.
func (h *harness) costs(s *Store) (all []Cost) {
	h.Helper()
	now := must(h.rdb.Time(h.Context()).Result())
	for c, err := range s.Costs.Days(h.Context(), now.AddDate(0, 0, 1-CostDays), now.AddDate(0, 0, 1)) {
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Cost) int { return cmp.Compare(b.USD, a.USD) })
	return all
}

// today is Redis' current date.
func (h *harness) today() time.Time {
	h.Helper()
	return must(h.rdb.Time(h.Context()).Result()).UTC().Truncate(24 * time.Hour)
}

func TestCostsAreToldApart(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		if got := h.costs(s); got != nil {
			h.Errorf("before anything ran: %+v", got)
		}
		settle := func(n int, e Expense, scopes ...string) {
			h.Helper()
			must(h.claim(s, h.scoped(s, n, scopes...)).Spend(ctx, e))
		}
		settle(1, Expense{USD: 0.1, Model: "opus", Tokens: Tokens{1, 2, 3, 4}}, "user:u", "repo:r")
		settle(2, Expense{USD: 2.1, Model: "opus", Tokens: Tokens{10, 20, 30, 40}}, "user:u", "repo:r")
		settle(3, Expense{USD: 1, Model: "haiku"}, "user:u", "repo:r")
		settle(4, Expense{USD: 0.5})
		settle(5, Expense{USD: 0.25, Model: "opus"})
		day := h.today()
		want := []Cost{
			{
				Day: day, Scopes: []string{"user:u", "repo:r"}, Model: "opus", Runs: 2, USD: 2.2,
				Tokens: Tokens{11, 22, 33, 44},
			},
			{Day: day, Scopes: []string{"user:u", "repo:r"}, Model: "haiku", Runs: 1, USD: 1},
			{Day: day, Runs: 1, USD: 0.5},
			{Day: day, Model: "opus", Runs: 1, USD: 0.25},
		}
		if diff := gocmp.Diff(want, h.costs(s)); diff != "" {
			h.Error(diff)
		}
		if spent := must(s.Costs.Spent(ctx, Fleet)); spent != 3.95 {
			h.Errorf("spent $%.2f, want 3.95 as in the costs", spent)
		}
	})
}

// The runs of credentials are apart, and are what the credentials have spent.
func TestCostsByCredential(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		e := Expense{USD: 3, Model: "opus", Tokens: Tokens{Input: 30}, Credential: "b"}
		must(h.claim(s, h.scoped(s, 1, "repo:r")).Spend(ctx, e))
		c := h.claim(s, h.scoped(s, 2))
		e = Expense{USD: 0.5, Credential: "a"}
		must(c.Spend(ctx, e))
		must(c.Spend(ctx, e)) // counts once
		day := h.today()
		want := []Cost{
			{
				Day: day, Scopes: []string{"repo:r", "credential:b"}, Model: "opus", Runs: 1, USD: 3,
				Tokens: Tokens{Input: 30},
			},
			{Day: day, Scopes: []string{"credential:a"}, Runs: 1, USD: 0.5},
		}
		if diff := gocmp.Diff(want, h.costs(s)); diff != "" {
			h.Error(diff)
		}
		for scope, want := range map[string]float64{"credential:a": 0.5, "credential:b": 3, Fleet: 3.5, "repo:r": 3} {
			if spent := must(s.Costs.Spent(ctx, scope)); spent != want {
				h.Errorf("%s has spent $%.2f, want $%.2f", scope, spent, want)
			}
		}
	})
}

// A run counts once, however often it is settled and whatever happens to its worker and task.
func TestARunCountsOnce(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		want := func(when string, runs int64, usd float64) {
			h.Helper()
			got := h.costs(s)
			if len(got) != 1 || got[0].Runs != runs || got[0].USD != usd {
				h.Errorf("%s: %+v, want %d runs for $%.2f", when, got, runs, usd)
			}
		}
		id := h.scoped(s, 1, "user:u")
		dead := h.claim(s, id)
		h.crash(dead) // between its run and its settlement
		h.takeover(s, dead)
		c := h.claim(s, id)
		if _, err := dead.Spend(ctx, Expense{USD: 100}); !errors.Is(err, ErrStale) {
			h.Errorf("a dead worker that wakes settles: %v", err)
		}
		for range 3 {
			must(c.Spend(ctx, Expense{USD: 0.25}))
		}
		want("settled three times", 1, 0.25)
		h.crash(c) // between its settlement and its ending
		h.takeover(s, c)
		again := h.claim(s, id)
		if _, err := c.Spend(ctx, Expense{USD: 0.25}); !errors.Is(err, ErrStale) {
			h.Errorf("settle once more = %v", err)
		}
		want("taken over", 1, 0.25)
		must(again.Spend(ctx, Expense{USD: 0.5}))
		h.ok(again.Return(ctx, Wait{})) // interrupted
		last := h.claim(s, id)
		must(last.Spend(ctx, Expense{USD: 1}))
		h.ok(last.End(ctx, nil))
		if _, err := last.Spend(ctx, Expense{USD: 1}); !errors.Is(err, ErrStale) {
			h.Errorf("settle after the end = %v", err)
		}
		want("three runs that were settled", 3, 1.75)
	})
}

// Days follow Redis' clock. A run over midnight counts on the day it ends.
func TestCostsAreOfADay(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		ctx, s := h.Context(), h.store(Config{})
		second := time.Date(2040, 1, 3, 0, 0, 0, 0, time.UTC)
		h.mini.SetTime(second.Add(-time.Microsecond))
		early, late := h.claim(s, h.scoped(s, 1)), h.claim(s, h.scoped(s, 2))
		must(early.Spend(ctx, Expense{USD: 1}))
		h.mini.SetTime(second)
		must(late.Spend(ctx, Expense{USD: 2}))
		must(early.Spend(ctx, Expense{USD: 1})) // again, on another day
		first := second.AddDate(0, 0, -1)
		if diff := gocmp.Diff([]Cost{
			{Day: second, Runs: 1, USD: 2}, {Day: first, Runs: 1, USD: 1},
		}, h.costs(s)); diff != "" {
			h.Error(diff)
		}
		for name, days := range map[string][2]time.Time{ // any moment of a day identifies it
			"the first":  {first, first.Add(23 * time.Hour)},
			"the second": {second.Add(23 * time.Hour), second.AddDate(0, 0, 50)},
			"none":       {second, first},
		} {
			var got []string
			for c, err := range s.Costs.Days(ctx, days[0], days[1]) {
				h.ok(err)
				got = append(got, c.Day.Format(time.DateOnly))
			}
			if want := map[string][]string{
				"the first": {"2040-01-02"}, "the second": {"2040-01-03"},
			}[name]; !slices.Equal(got, want) {
				h.Errorf("%s: %v", name, got)
			}
		}
	})
}

// A day's costs expire after CostDays.
func TestCostsAreKept(t *testing.T) {
	onMini(t, func(h *harness) { // only its clock can be set
		s := h.store(Config{})
		h.mini.SetTime(time.Date(2040, 1, 2, 0, 0, 0, 0, time.UTC))
		must(h.claim(s, h.scoped(s, 1)).Spend(h.Context(), Expense{USD: 1}))
		key := s.key("costs", fmt.Sprint(dayOf(h.today())))
		if ttl := h.rdb.TTL(h.Context(), key).Val(); ttl != CostDays*24*time.Hour {
			h.Errorf("%s lives for %s", key, ttl)
		}
	})
}

// The number of entries per day is bounded. The sums stay correct.
func TestCostsAreBounded(t *testing.T) {
	inOneDay(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{CostCap: 3})
		settle := func(n int, usd float64, scopes ...string) {
			h.Helper()
			c := h.claim(s, h.scoped(s, n, scopes...))
			for range 2 {
				must(c.Spend(ctx, Expense{USD: usd, Model: "opus", Tokens: Tokens{Output: 1}}))
			}
		}
		for n := range 6 {
			settle(n, 10-float64(n), fmt.Sprintf("user:%d", n))
		}
		settle(6, 2, "user:1") // with costs on that day
		row := func(runs int64, usd float64, scopes ...string) Cost {
			return Cost{
				Day: h.today(), Scopes: scopes, Model: "opus", Runs: runs, USD: usd, Tokens: Tokens{Output: runs},
			}
		}
		other := row(3, 7+6+5)
		other.Model, other.Other = "", true
		want := []Cost{other, row(2, 11, "user:1"), row(1, 10, "user:0"), row(1, 8, "user:2")}
		if diff := gocmp.Diff(want, h.costs(s)); diff != "" {
			h.Error(diff)
		}
	})
}

// A long name is not stored, even if it is the only one.
func TestLongNamesAreNotKept(t *testing.T) {
	onMini(t, func(h *harness) {
		s := h.store(Config{})
		must(h.claim(s, h.scoped(s, 1, "user:"+strings.Repeat("x", 1000))).Spend(h.Context(), Expense{USD: 1}))
		if got := h.costs(s); len(got) != 1 || !got[0].Other {
			h.Errorf("got %+v", got)
		}
	})
}

func TestCostsWithoutRedis(t *testing.T) {
	onMini(t, func(h *harness) {
		s := h.store(Config{})
		h.mini.Close()
		n := 0
		for _, err := range s.Costs.Days(h.Context(), time.Now().AddDate(0, 0, -50), time.Now()) {
			if n++; err == nil || n > 1 {
				h.Errorf("element %d: %v", n, err)
			}
		}
	})
}
