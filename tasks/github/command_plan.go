package github

import (
	"context"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// The command /plan on an issue makes the agent post a plan and change nothing. Until a person approves the plan,
// further requests on the issue change the plan.

const (
	noPlan       = "No plan is waiting for approval here."
	howToApprove = "To have me do this, comment `/approve`. To change the plan, mention me with what should be " +
		"different; `/cancel` drops it."
)

// planWork is the work on a plan.
var planWork = work{kind: subject.KindIssue, profile: agent.Read, plan: true}

// workOf returns the work that a command or a mention requests.
func (i *interpreter) workOf(ctx context.Context, h remarkEvent) (work, error) {
	w, command := mentionWork, h.said.word
	if h.said.work != nil {
		w = *h.said.work
	}
	if !h.OnIssue {
		return w, nil
	}
	if command == cmdApprove {
		return issueWork, i.mayApprove(ctx, h)
	}
	if w.kind == subject.KindFix {
		w.kind = subject.KindIssue
	}
	if command != "" {
		return w, nil
	}
	p, err := i.memory.State(ctx, h.Ref)
	if err != nil {
		return work{}, err
	}
	if p.Plans.Without(h.task()).Waits() { // the request changes the plan
		w.plan, w.profile = true, agent.Read
	}
	return w, nil
}

// mayApprove returns an *tasks.InputError if no plan was posted before this comment and still waits, or if its author
// may not approve it. It records nothing: only the task that carries out the plan does, or an event that fails between
// would leave neither.
func (i *interpreter) mayApprove(ctx context.Context, h remarkEvent) error {
	if err := i.gate.MustWrite(ctx, h.Ref, h.Author); err != nil {
		return err
	}
	p, err := i.memory.State(ctx, h.Ref)
	if err != nil || p.Plans.Has(h.task()) {
		return err
	}
	if !p.Plans.Last().PostedBefore(h.At) {
		return thread.Refuse(noPlan)
	}
	open, err := i.desk.Open(ctx, h.thread())
	if err != nil {
		return err
	}
	for _, st := range open { // its event may have failed before it recorded the task
		o, err := subject.Of(st.Task)
		if err == nil && o.Asked != nil && o.Asked.Command == cmdApprove && st.Task.ID != h.task() {
			return thread.Refuse(noPlan)
		}
	}
	return nil
}

// notePlan records that the task of a comment makes a plan, that it carries out the one that waits, or that work on the
// issue begins without one. What counts is the task as it is stored: an event that is delivered again has the words
// from before an edit.
func (i *interpreter) notePlan(ctx context.Context, h remarkEvent) error {
	if !h.OnIssue {
		return nil
	}
	st, err := i.desk.Status(ctx, h.task())
	if err != nil {
		return err
	}
	t := st.Task
	o, err := subject.Of(t)
	if err != nil {
		return err
	}
	approves := o.Asked != nil && o.Asked.Command == cmdApprove
	counts := (t.Options.Plan || t.Kind == subject.KindIssue) && !i.gate.MayNot(ctx, h.Ref, h.Author)
	late := false
	err = i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		late = approves && !p.Plans.Has(t.ID) && !p.Plans.Last().PostedBefore(h.At)
		if p.Plans = p.Plans.Without(t.ID); counts && !late {
			p.Plans = p.Plans.With(subject.PlanRequest{Task: t.ID, Work: !t.Options.Plan})
		}
		return nil
	})
	if err != nil || !counts {
		return err
	}
	if late {
		return i.refuseApproval(ctx, t.ID)
	}
	return i.forgetEnded(ctx, h)
}

// refuseApproval withdraws the task of an approval that came at the same time as another one.
func (i *interpreter) refuseApproval(ctx context.Context, task string) error {
	if _, err := i.desk.Withdraw(ctx, task); err != nil {
		return err
	}
	return thread.Refuse(noPlan)
}

// forgetEnded restores the plan before a request whose task ended before it was recorded, or has been dropped since.
func (i *interpreter) forgetEnded(ctx context.Context, h remarkEvent) error {
	st, err := i.desk.Status(ctx, h.task())
	if err != nil || st.Ending == nil {
		return err
	}
	return i.memory.ForgetRequest(ctx, h.Ref, h.task())
}
