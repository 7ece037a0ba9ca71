package desk

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
)

// Load is what the fleet is busy with, as far as the visitor may see it.
type Load struct {
	Next   map[string][]tasks.Status // by class: the waiting tasks that come first
	Limits []LimitUse                // in force
	Budget Spending                  // of the fleet today; its Budget is 0 if none exists
}

// Spending is what was spent today of a budget, in US dollars.
type Spending = store.Spending

// LimitUse is a limit on concurrent runs and where it is used most.
type LimitUse struct {
	Of   string // repository or person
	Max  int    // for each
	Uses []Use
}

// Use is one repository or person with runs.
type Use struct {
	Name    string
	Runs    int // those that count under the limit, so none that waits for a person
	Waiting int // tasks that were refused because of this limit
}

// How many tasks of a class, and how many uses of a limit, Load has at most.
const (
	maxNext = 3
	maxUses = 5
)

// Load summarizes the live tasks.
func (f *Fleet) Load(ctx context.Context, live []store.LiveRecord) (Load, error) {
	l := Load{Next: map[string][]tasks.Status{}}
	sees := f.desk.policy.People.Visible(ctx)
	uses := map[string]*Use{}
	use := func(scope string) *Use {
		if uses[scope] == nil {
			uses[scope] = &Use{Name: f.scopeName(scope)}
		}
		return uses[scope]
	}
	next := map[string][]string{}
	for _, rec := range live {
		switch {
		case sees != nil && !sees(rec.Scopes):
		case rec.State == store.Running && !rec.Lent:
			for _, scope := range rec.Scopes {
				use(scope).Runs++
			}
		case rec.State == store.Waiting:
			if rec.Blocked.Scope != "" {
				use(rec.Blocked.Scope).Waiting++
			}
			if len(next[rec.Class]) < maxNext {
				next[rec.Class] = append(next[rec.Class], rec.ID)
			}
		}
	}
	limits := f.desk.policy.Limits
	for _, kind := range []struct {
		of, prefix string
		most       int
	}{
		{"repository", scope.Repository, limits.Repository},
		{"person", scope.User, limits.User},
	} {
		if kind.most > 0 {
			l.Limits = append(l.Limits, LimitUse{kind.of, kind.most, mostUsed(uses, kind.prefix)})
		}
	}
	if l.Budget.Budget = f.desk.policy.Budgets.Day; l.Budget.Budget > 0 && sees == nil {
		var err error
		if l.Budget.Spent, err = f.desk.store.Costs.Spent(ctx, store.Fleet); err != nil {
			return l, err
		}
	}
	return l, f.readNext(ctx, next, l.Next)
}

// readNext reads the tasks with these IDs.
func (f *Fleet) readNext(ctx context.Context, ids map[string][]string, into map[string][]tasks.Status) error {
	for class, list := range ids {
		next, err := f.desk.readIn(ctx, list, store.Waiting) // some may have started in the meantime
		if err != nil {
			return err
		}
		into[class] = next
	}
	return nil
}

// scopeName names a scope for people.
func (f *Fleet) scopeName(used string) string {
	if person, ok := strings.CutPrefix(used, scope.User); ok {
		return f.desk.policy.People.Named(person)
	}
	_, name, _ := strings.Cut(used, ":")
	return name
}

// mostUsed returns the uses of one kind of scope, the busiest first.
func mostUsed(uses map[string]*Use, prefix string) (list []Use) {
	for scope, u := range uses {
		if strings.HasPrefix(scope, prefix) && u.Runs+u.Waiting > 0 {
			list = append(list, *u)
		}
	}
	slices.SortFunc(list, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxUses)]
}
