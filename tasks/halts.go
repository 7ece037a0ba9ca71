package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
)

// Fleet is the desk for operators: which classes and workers take tasks, and what they are busy with. It is safe for
// concurrent use.
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
	if err := f.desk.store.Halts.Pause(ctx, class, PublicName(ctx)); err != nil {
		return Halted{}, err
	}
	if err := f.desk.queue.pause(ctx, class); err != nil {
		return Halted{}, err
	}
	return f.halted(ctx, class, f.desk.store.Halts.Paused)
}

// Resume undoes Pause. A pause by asynq's own tools ends as well.
func (f *Fleet) Resume(ctx context.Context, class string) (Halted, error) {
	if err := mayHalt(ctx, class); err != nil {
		return Halted{}, err
	}
	if err := f.desk.store.Halts.Resume(ctx, class); err != nil {
		return Halted{}, err
	}
	return Halted{Name: class}, f.desk.queue.resume(ctx, class)
}

// Cordon makes a worker, or all workers of a host, take no tasks until Uncordon. Their running tasks continue.
func (f *Fleet) Cordon(ctx context.Context, name string) (Halted, error) {
	if err := VisitorOf(ctx).Operates(ctx, ""); err != nil {
		return Halted{}, err
	}
	seen, err := f.desk.store.Workers.List(ctx)
	if err != nil {
		return Halted{}, err
	}
	if !slices.ContainsFunc(seen, func(w store.Worker) bool { return w.ID == name || w.Host == name }) {
		return Halted{}, &InputError{Sentence: fmt.Sprintf("No live worker has the ID or the host %q.", name)}
	}
	if err := f.desk.store.Halts.Cordon(ctx, name, PublicName(ctx)); err != nil {
		return Halted{}, err
	}
	return f.halted(ctx, name, f.desk.store.Halts.Cordoned)
}

// Uncordon undoes Cordon.
func (f *Fleet) Uncordon(ctx context.Context, name string) (Halted, error) {
	if err := VisitorOf(ctx).Operates(ctx, ""); err != nil {
		return Halted{}, err
	}
	switch found, err := f.desk.store.Halts.Uncordon(ctx, name); {
	case err != nil:
		return Halted{}, err
	case !found:
		return Halted{},
			&InputError{Sentence: fmt.Sprintf("%q is not cordoned. A host is uncordoned by its name, "+
				"not by the ID of its worker.", name)}
	}
	return Halted{Name: name}, nil
}

// halted reads back who did it first.
func (f *Fleet) halted(
	ctx context.Context, name string, all func(context.Context) (map[string]store.Halt, error),
) (Halted, error) {
	list, err := all(ctx)
	if h, ok := list[name]; ok && err == nil {
		return Halted{name, &h}, nil
	}
	return Halted{Name: name}, err
}

// mayHalt checks that a class exists and that the visitor is an operator of all repositories.
func mayHalt(ctx context.Context, class string) error {
	err := VisitorOf(ctx).Operates(ctx, "")
	if err == nil && !slices.Contains(Classes, class) {
		err = &InputError{Sentence: fmt.Sprintf("There is no class %q. The classes are %s.", class,
			strings.Join(Classes, ", "))}
	}
	return err
}

// WhyPaused explains, as a clause, why tasks of a paused class wait.
func WhyPaused(class string, h store.Halt, now time.Time) string {
	return by(h) + " paused " + class + " tasks " + when(h, now)
}

// by names who did it. The console's token does not know.
func by(h store.Halt) string {
	if h.By == "" || h.By == Console {
		return "an operator"
	}
	return h.By
}

// when returns the time of a halt after a preposition.
func when(h store.Halt, now time.Time) string {
	layout := "at 15:04 UTC"
	if since := h.Since.UTC(); since.Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		layout = "on 2006-01-02 at 15:04 UTC"
	}
	return h.Since.UTC().Format(layout)
}

// CordonedBy says, as a clause, who cordoned a worker.
func CordonedBy(h store.Halt, now time.Time) string {
	return by(h) + " cordoned it " + when(h, now)
}
