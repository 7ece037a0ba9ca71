package subject

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Plans has the requests on an issue that decide which plan waits, oldest first: those for a plan, those that approve
// it, and those to work on the issue without it. The last one counts. A request that made nothing is removed, and the
// one before it counts again.
type Plans []PlanRequest

// PlanRequest is a request in plans.
type PlanRequest struct {
	Task string    `json:"task"`
	Work bool      `json:"work,omitempty"` // it carries out the plan, or works on the issue without it
	Done time.Time `json:"done,omitzero"`  // when the plan was posted, or the work ended; zero before
}

// Last returns the request that counts, or the zero value.
func (p Plans) Last() PlanRequest {
	if len(p) == 0 {
		return PlanRequest{}
	}
	return p[len(p)-1]
}

// Waits reports whether a plan is being made or waits for approval.
func (p Plans) Waits() bool { return len(p) > 0 && !p.Last().Work }

// Has reports whether the request of a task is among them.
func (p Plans) Has(task string) bool {
	return slices.ContainsFunc(p, func(r PlanRequest) bool { return r.Task == task })
}

// With returns the requests with one more, unless it is there already.
func (p Plans) With(r PlanRequest) Plans {
	at, known := slices.BinarySearchFunc(p, r.Task, func(o PlanRequest, task string) int {
		return cmp.Compare(o.Task, task)
	})
	if known {
		return p
	}
	return slices.Insert(p, at, r)
}

// Without returns the requests without one that made nothing.
func (p Plans) Without(request string) Plans {
	return slices.DeleteFunc(p, func(r PlanRequest) bool { return r.Task == request && r.Done.IsZero() })
}

// done returns the requests after one is done. It can no longer be withdrawn, so those before it do not matter anymore.
// Neither do later ones that were done earlier, before it was retried.
func (p Plans) done(r PlanRequest) Plans {
	return slices.DeleteFunc(p, func(o PlanRequest) bool {
		return o.Task <= r.Task || !o.Done.IsZero() && !o.Done.After(r.Done)
	}).With(r)
}

// PostedBefore reports whether the plan of this request was posted before a comment of that time. GitHub gives times in
// whole seconds.
func (r PlanRequest) PostedBefore(at time.Time) bool {
	return !r.Work && !r.Done.IsZero() && !at.Before(r.Done.Truncate(time.Second))
}

// ForgetRequest restores the plan before a request that was withdrawn or refused.
func (m Memory) ForgetRequest(ctx context.Context, r thread.Ref, task string) error {
	return m.ChangeState(ctx, r, func(p *State) error {
		p.Plans = p.Plans.Without(task)
		return nil
	})
}

// PlanEnded records how the making of a plan, or the work on an issue as a whole, ended. Only a plan that was made
// replaces the one before it, and work that was refused leaves it waiting.
func (m Memory) PlanEnded(ctx context.Context, t tasks.Task, r thread.Ref, e tasks.Ending) error {
	work := t.Kind == KindIssue && !t.Options.Plan
	if !work && !t.Options.Plan {
		return nil
	}
	all := append(slices.Clone(e.Covers), t.ID)
	return m.ChangeState(ctx, r, func(p *State) error {
		if e.Kind == tasks.Answered || work && e.Kind != tasks.Refused && e.Kind != tasks.Withdrawn {
			p.Plans = p.Plans.done(PlanRequest{Task: slices.Max(all), Work: work, Done: e.At})
			return nil
		}
		for _, id := range all {
			p.Plans = p.Plans.Without(id)
		}
		return nil
	})
}

// DropPlan forgets the plan of an issue that waits, also if a request is changing it, and reports whether there was
// one.
func (m Memory) DropPlan(ctx context.Context, r thread.Ref, at time.Time) (dropped bool, err error) {
	err = m.ChangeState(ctx, r, func(p *State) error {
		before := len(p.Plans)
		p.Plans = slices.DeleteFunc(p.Plans, func(q PlanRequest) bool { return q.PostedBefore(at) })
		dropped = len(p.Plans) < before
		return nil
	})
	return dropped, err
}
