package tasks

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/store"
)

// Budgets limits the cost of tasks, in US dollars at list price. 0 means no budget. All budgets but Task are per day,
// UTC.
type Budgets struct {
	Task       float64 // of one task, even if it asks for more
	User       float64 // of each person
	Channel    float64 // of each channel
	Repository float64 // of each repository
	Day        float64 // of the whole fleet
	Reserve    float64 // expected cost of a task that names no limit; 0: $1
	Contact    string  // who can raise them
}

func (b Budgets) Daily() []store.Budget {
	return []store.Budget{
		{Scope: userScope, USD: b.User},
		{Scope: channelScope, USD: b.Channel},
		{Scope: repoScope, USD: b.Repository},
		{Scope: store.Fleet, USD: b.Day},
	}
}

// Bill is what the final message says about a task's cost beyond the cost of its last run.
type Bill struct {
	Earlier float64  `json:"earlier_usd,omitempty"` // cost of its interrupted runs
	Crashes int      `json:"crashes,omitempty"`     // runs that died with their worker, at unknown cost
	Near    []string `json:"near,omitempty"`        // the daily budgets that the task pushed above 80 %
}

// Refusal explains to the asker which budget refused the task.
func (b Budgets) Refusal(over *store.OverBudget) *InputError {
	who, whose := cmp.Or(strings.TrimSpace(b.Contact), "An operator"), BudgetName(over.Scope)
	return &InputError{Sentence: fmt.Sprintf("%s is used up: $%.2f of $%.2f. %s can raise it; a new day begins at midnight UTC.",
		strings.ToUpper(whose[:1])+whose[1:], over.Spent, over.Budget, who)}
}

// BudgetName names the budget of a scope for the asker of a task.
func BudgetName(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case userScope:
		return "your budget for today"
	case channelScope:
		return "this channel's budget for today"
	case repoScope:
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

// CostUSD returns the known cost of the task, including its interrupted runs.
func (e Ending) CostUSD() float64 { return e.Result.CostUSD + e.Bill.Earlier }

// cost returns that cost as text; empty if nothing is known.
func (e Ending) cost() string {
	text := ""
	switch usd := e.CostUSD(); {
	case usd >= 0.01:
		text = fmt.Sprintf("$%.2f", usd)
	case usd > 0:
		text = "under $0.01"
	}
	if e.Bill.Crashes > 0 {
		text = strings.TrimPrefix(text+" and the unknown cost of runs that died with a worker", " and ")
	}
	return text
}
