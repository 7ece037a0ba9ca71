package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Credentials lists the credentials for the model that workers have used lately, if the visitor sees the whole fleet.
func (f *Fleet) Credentials(ctx context.Context) ([]capacity.CredentialUse, error) {
	if !people.VisitorOf(ctx).Has(policy.See) {
		return nil, nil
	}
	return capacity.Credentials(ctx, f.desk.store)
}

// DayBudget returns the fleet's budget of a day in US dollars; 0 if there is none, or if the visitor does not see the
// whole fleet.
func (f *Fleet) DayBudget(ctx context.Context) float64 {
	if !people.VisitorOf(ctx).Has(policy.See) {
		return 0
	}
	return f.desk.policy.Budgets.Day
}

// Fleet is the desk for operators: which classes and workers take tasks. It is safe for concurrent use.
type Fleet struct{ desk *Desk }

// FleetOf returns the fleet of a desk.
func FleetOf(d *Desk) *Fleet { return &Fleet{d} }

// Halted is a class or a worker after a change: Halt is nil if it takes tasks.
type Halted struct {
	Name string      `json:"name"` // of the class, the worker or the host
	Halt *store.Halt `json:"halt,omitempty"`
}

// Pause makes every worker take no tasks of a class, on behalf of the visitor, until Resume. Running tasks continue.
func (f *Fleet) Pause(ctx context.Context, class string) (Halted, error) {
	if err := mayHalt(ctx, class); err != nil {
		return Halted{}, err
	}
	halted, err := halt(ctx, f.desk.store.Paused, class)
	if err != nil {
		return Halted{}, err
	}
	return halted, f.desk.queue.Pause(ctx, class)
}

// Resume undoes Pause. A pause by asynq's own tools ends as well.
func (f *Fleet) Resume(ctx context.Context, class string) (Halted, error) {
	if err := mayHalt(ctx, class); err != nil {
		return Halted{}, err
	}
	if _, err := f.desk.store.Paused.Remove(ctx, class); err != nil {
		return Halted{}, err
	}
	return Halted{Name: class}, f.desk.queue.Resume(ctx, class)
}

// Cordon makes a worker, or all workers of a host, take no tasks until Uncordon. Their running tasks continue.
func (f *Fleet) Cordon(ctx context.Context, name string) (Halted, error) {
	if err := people.VisitorOf(ctx).Operates(ctx, ""); err != nil {
		return Halted{}, err
	}
	seen, err := f.desk.store.Workers.List(ctx)
	if err != nil {
		return Halted{}, err
	}
	if !slices.ContainsFunc(seen, func(w store.Worker) bool { return w.ID == name || w.Host == name }) {
		return Halted{}, &tasks.InputError{Sentence: fmt.Sprintf("No live worker has the ID or the host %q.", name)}
	}
	return halt(ctx, f.desk.store.Cordoned, name)
}

// Uncordon undoes Cordon.
func (f *Fleet) Uncordon(ctx context.Context, name string) (Halted, error) {
	if err := people.VisitorOf(ctx).Operates(ctx, ""); err != nil {
		return Halted{}, err
	}
	found, err := f.desk.store.Cordoned.Remove(ctx, name)
	if err != nil {
		return Halted{}, err
	}
	if !found {
		return Halted{},
			&tasks.InputError{Sentence: fmt.Sprintf("%q is not cordoned. A host is uncordoned by its name, "+
				"not by the ID of its worker.", name)}
	}
	return Halted{Name: name}, nil
}

// halt adds a name to those that are halted, and returns who did it first.
func halt(ctx context.Context, list *store.List[store.Halt], name string) (Halted, error) {
	now := store.Halt{By: people.PublicName(ctx), Since: time.Now().UTC().Truncate(time.Second)}
	if err := list.Add(ctx, name, now); err != nil {
		return Halted{}, err
	}
	first, err := list.Read(ctx, name)
	if errors.Is(err, store.ErrNotFound) { // somebody has ended it meanwhile
		return Halted{Name: name}, nil
	}
	return Halted{name, &first}, err
}

// mayHalt checks that a class exists and that the visitor is an operator of all repositories.
func mayHalt(ctx context.Context, class string) error {
	err := people.VisitorOf(ctx).Operates(ctx, "")
	if err == nil && !slices.Contains(tasks.Classes, class) {
		err = &tasks.InputError{Sentence: fmt.Sprintf("There is no class %q. The classes are %s.", class,
			strings.Join(tasks.Classes, ", "))}
	}
	return err
}

// Pools returns the pools of the fleet; see the function of that name.
func (f *Fleet) Pools(live []store.LiveRecord, seen []store.Worker) []capacity.PoolState {
	return capacity.Pools(f.desk.policy.Pools, live, seen)
}
