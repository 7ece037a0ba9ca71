package store

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Fleet is the scope that every task counts in.
const Fleet = "fleet"

// Budget bounds what the tasks of a scope may cost together in a day, by Redis' clock, UTC. Spending counts on the day it is settled.
type Budget struct {
	Scope string  // Fleet; or, ending in a colon, all scopes of that kind, each with a budget of its own
	USD   float64 // 0: no budget
}

// Spending is what a scope has spent today of its budget, in US dollars.
type Spending struct {
	Scope         string
	Spent, Budget float64
}

// OverBudget is the refusal to start what a budget does not allow.
type OverBudget struct {
	Spending
	Reserved float64 // for runs of others, who may give a part of it back; Spent does not include it
}

// Error tells the scope and how much there was.
func (e *OverBudget) Error() string {
	return fmt.Sprintf("%s has spent $%.2f today and reserved $%.2f, of $%.2f", e.Scope, e.Spent, e.Reserved, e.Budget)
}

// Reserve sets aside what the running task is going to cost, in every scope of it that has a budget, or in none: reservations and
// spending never exceed a budget together. Where less than that is left, and nobody else holds a reservation, it gets what is left. left
// is what the run can spend before it exceeds a budget; 0 = no budget holds. The reservation is gone with [Claim.Spend], and with
// whatever ends the run. Asked again, it replaces the first.
//
// [*OverBudget] when a budget is used up, or so far reserved by others that this one has to wait; [ErrStale] when the task is not ours any
// more.
func (c *Claim) Reserve(ctx context.Context, amount float64, budgets ...Budget) (left float64, err error) {
	args := []any{c.ID(), c.fence, microUSD(amount)}
	r, err := c.store.run(ctx, "reserve", append(args, budgetArgs(budgets)...)...)
	if err != nil {
		return 0, fmt.Errorf("reserve $%.2f for %s: %w", amount, c.ID(), err)
	}
	return usd(r.text(1)), nil
}

// Spend settles what the run has cost: in all scopes of its task, whether they have a budget or not, in [Record.Cost], and in what
// [Costs.Days] tells. Only the first one of a claim counts. near are the budgets that runs of this task, this one or earlier, took beyond
// 80 %, as they were then. [ErrStale] when the task is not ours any more or has ended.
func (c *Claim) Spend(ctx context.Context, e Expense, budgets ...Budget) (near []Spending, err error) {
	args := []any{
		c.ID(), c.fence, c.store.cfg.CostCap, e.Model, microUSD(e.USD), e.Input, e.Output, e.CacheRead, e.CacheCreation,
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

// Spent is what was settled today in a scope, in US dollars, whether it has a budget or not.
func (s *Costs) Spent(ctx context.Context, scope string) (float64, error) {
	r, err := s.run(ctx, "spent", scope)
	if err != nil {
		return 0, fmt.Errorf("read what %s has spent: %w", scope, err)
	}
	return usd(r.text(1)), nil
}

// budgetArgs are budgets as scripts take them.
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

// microUSD is how amounts are stored: whole, so that sums are exact.
func microUSD(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// usd reads an amount; one that is not there is 0.
func usd(micro string) float64 {
	n, _ := strconv.ParseInt(micro, 10, 64)
	return float64(n) / 1e6
}
