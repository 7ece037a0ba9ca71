package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Costs are the costs of runs.
type Costs struct{ *conn }

// Fleet is the scope of every task.
const Fleet = "fleet"

// Budget bounds the cost of a scope's tasks per day (UTC, by Redis' clock). Spending counts on the day of its
// settlement.
type Budget struct {
	Scope string  // Fleet, or a kind ending in a colon: each scope of that kind has a separate budget
	USD   float64 // 0: no budget
}

// Spending is a scope's spending today and its budget, in US dollars.
type Spending struct {
	Scope         string
	Spent, Budget float64
}

// OverBudget refuses to start a task because a budget is used up.
type OverBudget struct {
	Spending
	Reserved float64 // for other runs, which may return a part of it; not included in Spent
}

// Error implements error.
func (e *OverBudget) Error() string {
	return fmt.Sprintf("%s has spent $%.2f today and reserved $%.2f, of $%.2f", e.Scope, e.Spent, e.Reserved, e.Budget)
}

// Reserve reserves the expected cost of the running task in all of its scopes that have a budget, or in none:
// reservations and spending together never exceed a budget. If less is left and there is no other reservation, it
// reserves what is left. It returns what the run can spend before it exceeds a budget, or 0 if no budget applies. The
// reservation ends with [Claim.Spend] and with the run. A second call replaces the reservation.
//
// It returns [*OverBudget] if a budget is used up or reserved by others, and [ErrStale] if the claim is lost.
func (c *Claim) Reserve(ctx context.Context, amount float64, budgets ...Budget) (left float64, err error) {
	args := []any{c.ID(), c.fence, microUSD(amount)}
	r, err := c.store.run(ctx, "reserve", append(args, budgetArgs(budgets)...)...)
	return usd(r.text(1)), wrapf(err, "reserve $%.2f for %s", amount, c.ID())
}

// Spend records the cost of the run in all scopes of its task, with or without a budget, in [Record.Cost] and in
// [Costs.Days]. Only the first call of a claim counts. It returns the budgets of which the task's runs have used more
// than 80 %, as they were then. It returns [ErrStale] if the claim is lost or the task has ended.
func (c *Claim) Spend(ctx context.Context, e Expense, budgets ...Budget) (near []Spending, err error) {
	args := []any{
		c.ID(), c.fence, c.store.cfg.CostCap, e.Model, microUSD(e.USD), e.Credential,
		fmt.Sprint(e.Input, e.Output, e.CacheRead, e.CacheCreation),
	}
	r, err := c.run(ctx, "spend", append(args, budgetArgs(budgets)...)...)
	if err != nil {
		return nil, fmt.Errorf("settle $%.2f of %s: %w", e.USD, c.ID(), err)
	}
	for i := 1; i < len(r); i++ {
		spent, rest, _ := strings.Cut(r.text(i), " ")
		budget, scope, _ := strings.Cut(rest, " ")
		near = append(near, spending(scope, spent, budget))
	}
	return near, nil
}

// Spent returns the spending of a scope today in US dollars, with or without a budget.
func (s *Costs) Spent(ctx context.Context, scope string) (float64, error) {
	r, err := s.run(ctx, "spent", scope)
	return usd(r.text(1)), wrapf(err, "read what %s has spent", scope)
}

// Afford returns [*OverBudget] if one of today's budgets is used up of these scopes, or of the fleet. Without a
// budget it asks nobody.
func (s *Costs) Afford(ctx context.Context, scopes []string, budgets ...Budget) error {
	args := budgetArgs(budgets)
	if args == nil {
		return nil
	}
	_, err := s.run(ctx, "afford", append([]any{strings.Join(scopes, "\n")}, args...)...)
	return wrapf(err, "look at budgets")
}

// budgetArgs returns budgets as arguments of a script.
func budgetArgs(budgets []Budget) []any {
	var pairs []any
	for _, b := range budgets {
		if b.USD > 0 {
			pairs = append(pairs, b.Scope, microUSD(b.USD))
		}
	}
	return pairs
}

func spending(scope, spent, budget string) Spending {
	return Spending{Scope: scope, Spent: usd(spent), Budget: usd(budget)}
}

// microUSD returns an amount as it is stored: a whole number, so that sums are exact.
func microUSD(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// usd reads a stored amount. A missing one is 0.
func usd(micro string) float64 {
	n, _ := strconv.ParseInt(micro, 10, 64)
	return float64(n) / 1e6
}

// CostDays is the number of days for which costs are kept, including today.
const CostDays = 90

// costStep is the number of days per round trip, which bounds memory.
const costStep = 10

// Tokens counts the tokens that runs exchanged with the model.
type Tokens struct{ Input, Output, CacheRead, CacheCreation int64 }

// Expense is the cost of one run.
type Expense struct {
	USD   float64
	Model string // one line; opaque
	Tokens

	// Credential is the name of the model's credential: the run also counts in the scope [CredentialScope] and name.
	// Empty: it has none.
	Credential string
}

// CredentialScope is the prefix of the scopes of credentials for the model.
const CredentialScope = "credential:"

// Cost is the total of a day's runs with the same scopes and model.
type Cost struct {
	Day    time.Time // of the settlement, by Redis' clock: midnight UTC
	Scopes []string
	Model  string
	Other  bool // the runs beyond [Config.CostCap], whose scopes and models are unknown

	Runs int64
	USD  float64
	Tokens
}

// Days returns the settled costs of the given days (UTC, both included), in no order within a day. They are written in
// the same step as [Costs.Spent] but kept longer. Runs that were lost with their worker are not included, because
// their cost is unknown. An error is the last element.
func (s *Costs) Days(ctx context.Context, first, last time.Time) iter.Seq2[Cost, error] {
	return func(yield func(Cost, error) bool) {
		from, to := dayOf(first), dayOf(last)
		for ; from <= to; from += costStep {
			days, err := s.readDays(ctx, from, min(from+costStep-1, to))
			if err != nil {
				yield(Cost{}, fmt.Errorf("read costs: %w", err))
				return
			}
			for i, cells := range days {
				for cell, sums := range cells {
					if !yield(decodeCost(from+int64(i), cell, sums), nil) {
						return
					}
				}
			}
		}
	}
}

// readDays reads some days as they are stored.
func (s *Costs) readDays(ctx context.Context, from, to int64) ([]map[string]string, error) {
	var replies []*redis.MapStringStringCmd
	err := s.pipelined(ctx, func(p redis.Pipeliner) error {
		for day := from; day <= to; day++ {
			replies = append(replies, p.HGetAll(ctx, s.key("costs", strconv.FormatInt(day, 10))))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	days := make([]map[string]string, len(replies))
	for i, r := range replies {
		days[i] = r.Val()
	}
	return days, nil
}

// decodeCost decodes a field that spend.lua wrote.
func decodeCost(day int64, cell, sums string) Cost {
	c := Cost{Day: time.Unix(day*86400, 0).UTC()}
	if end := strings.LastIndexByte(cell, '\n'); end < 0 {
		c.Other = true
	} else {
		c.Scopes, c.Model = lines(strings.TrimPrefix(cell[:end], "\n")), cell[end+1:]
	}
	var n [6]int64
	for i, sum := range strings.Fields(sums) {
		if i < len(n) {
			n[i], _ = strconv.ParseInt(sum, 10, 64)
		}
	}
	c.USD, c.Runs, c.Tokens = float64(n[0])/1e6, n[1], Tokens{n[2], n[3], n[4], n[5]}
	return c
}

// dayOf returns the days since 1970 (UTC) of a time.
func dayOf(t time.Time) int64 { return t.Unix() / 86400 }
