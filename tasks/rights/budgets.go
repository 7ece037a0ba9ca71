package rights

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
)

// Budgets limits the cost of tasks, in US dollars at list price. 0 means no budget. All budgets but Task are per day,
// UTC.
type Budgets struct {
	Task       float64 // of one task, even if it asks for more
	User       float64 // of each person
	Channel    float64 // of each channel
	Repository float64 // of each repository
	Day        float64 // of the whole fleet
	Contact    string  // who can raise them
}

func (b Budgets) Daily() []store.Budget {
	return []store.Budget{
		{Scope: scope.User, USD: b.User},
		{Scope: scope.Channel, USD: b.Channel},
		{Scope: scope.Repository, USD: b.Repository},
		{Scope: store.Fleet, USD: b.Day},
	}
}

func (b Budgets) contact() string { return cmp.Or(strings.TrimSpace(b.Contact), "An operator") }

// Exhausted explains to the asker which budget ended a run that was allowed to cost run: the task's own, of which
// earlier runs had spent a part, or what the budgets of the day had left. It is empty if the run had no budget.
func (b Budgets) Exhausted(own, earlier, run float64) string {
	said := fmt.Sprintf("The agent used up its budget of %s for this task. ", display.Dollars(own))
	switch {
	case run <= 0:
		return ""
	case !b.OwnUsedUp(own, earlier, run):
		return fmt.Sprintf("The agent used up the %s that a budget for today had left. %s can raise it; "+
			"a new day begins at midnight UTC.", display.Dollars(run), b.contact())
	case b.Task > 0 && own >= b.Task:
		return said + b.contact() + " can raise it."
	case b.Task > 0:
		return said + fmt.Sprintf("Ask again with a larger budget, up to %s.", display.Dollars(b.Task))
	}
	return said + "Ask again with a larger budget."
}

// OwnUsedUp reports whether it was the task's own budget that ended a run which was allowed to cost run, and not what
// the budgets of the day had left. Earlier runs had spent a part of it.
func (Budgets) OwnUsedUp(own, earlier, run float64) bool {
	return own > 0 && run > 0 && run >= own-earlier-0.005
}

// PermitRetry refuses to retry a task that has nothing left to spend: its maximum is for all its runs.
func (b Budgets) PermitRetry(t tasks.Task, spent float64, e *tasks.Ending) error {
	own := t.Options.MaxUSD
	if own <= 0 || spent < own && (e == nil || !e.Bill.UsedUp) {
		return nil
	}
	return &tasks.InputError{Sentence: b.Exhausted(own, 0, own) + " A retry has the same budget."}
}

// Refusal explains to the asker which budget refused the task.
func (b Budgets) Refusal(over *store.OverBudget) *tasks.InputError {
	who, whose := b.contact(), BudgetName(over.Scope)
	amount := display.Dollars(over.Budget)
	return &tasks.InputError{
		Option: tasks.OptionBudget + " " + over.Scope + " " + amount,
		Sentence: fmt.Sprintf("%s is used up: %s of %s. %s can raise it; a new day begins at midnight UTC.",
			strings.ToUpper(whose[:1])+whose[1:], display.Dollars(over.Spent), amount, who),
	}
}

// BudgetName names the budget of a scope for the asker of a task.
func BudgetName(spentIn string) string {
	switch kind, name, _ := strings.Cut(spentIn, ":"); kind + ":" {
	case scope.User:
		return "your budget for today"
	case scope.Channel:
		return "this channel's budget for today"
	case scope.Repository:
		return "the budget of " + name + " for today"
	}
	return "the fleet's budget for today"
}

// LowerLimit returns the lower of two limits; 0 means no limit.
func LowerLimit(a, b float64) float64 {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// Limits is how many tasks may run at once in the whole fleet. 0 means no limit.
type Limits struct {
	Repository int // for each repository
	User       int // for each person
}

// Caps returns the limits in the form that a claim takes.
func (l Limits) Caps() []store.Cap {
	return []store.Cap{{Scope: scope.Repository, Max: l.Repository}, {Scope: scope.User, Max: l.User}}
}
