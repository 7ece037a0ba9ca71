package worker

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// whyReserved is why a task waits for a budget that is not used up yet.
const whyReserved = "the day's budget is reserved by other runs"

// afford reserves the expected cost of a task that is about to run, and returns the cost at which to stop the run; 0
// means no limit. It refuses the task with an *InputError if a budget is used up, and postpones it while others have
// reserved the rest.
func (w *Worker) afford(r *run, t tasks.Task) (maxUSD float64, err error) {
	b := w.cfg.Policy.Budgets
	maxUSD = t.Options.MaxUSD
	if maxUSD > 0 {
		if maxUSD -= r.claim.Record().Cost; maxUSD <= 0 { // its interrupted runs have used it up
			return 0, agent.NewError(agent.ClassBudget, "spent before the run")
		}
	}
	left, err := r.claim.Reserve(r.ctx, cmp.Or(maxUSD, b.Reserve, 1), b.Daily()...)
	if over, ok := errors.AsType[*store.OverBudget](err); ok {
		if over.Spent < over.Budget {
			return 0, tasks.Later(w.timing.Budget, whyReserved) // do not reveal what others have spent
		}
		return 0, b.Refusal(over)
	}
	if err != nil {
		return 0, err
	}
	return tasks.LowerLimit(maxUSD, left), nil
}

// settle records what a run has cost, however it ended. An interrupted run has a cost, too.
func (w *Worker) settle(r *run, res agent.Result) tasks.Bill {
	rec := r.claim.Record()
	bill := tasks.Bill{Earlier: rec.Cost, Crashes: rec.Crashes}
	var near []store.Spending
	_, err := w.persist(r, "settle", func() (err error) {
		near, err = r.claim.Spend(r.detached, expense(res), w.cfg.Policy.Budgets.Daily()...)
		return err
	})
	if err != nil {
		w.log.Error("settle cost", "run", rec.ID, "usd", res.CostUSD, "err", err)
	}
	for _, n := range near {
		w.log.Warn("budget nearly used up", "run", rec.ID, "scope", n.Scope, "spent", n.Spent, "budget", n.Budget)
		bill.Near = append(bill.Near, fmt.Sprintf("%s: $%.2f of $%.2f", tasks.BudgetName(n.Scope), n.Spent, n.Budget))
	}
	return bill
}

// expense converts a run's result for the store.
func expense(r agent.Result) store.Expense {
	return store.Expense{USD: r.CostUSD, Model: format.OneWord(r.Model), Tokens: store.Tokens(r.Usage)}
}
