package review

import (
	"context"
	"fmt"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// memory is the memory with the findings of reviews.
type memory struct{ subject.Memory }

func (m memory) ledgerMemo(r thread.Ref) intake.Memo[findings.Ledger] {
	return intake.Memo[findings.Ledger]{Memory: m.Store, Name: "github/" + r.String() + "/findings", Log: m.Log}
}

// changeLedger changes a pull request's ledger. change may be called several times.
func (m memory) changeLedger(ctx context.Context, r thread.Ref, change func(*findings.Ledger)) error {
	return m.ledgerMemo(r).Change(ctx, func(l *findings.Ledger) error {
		change(l)
		return nil
	})
}

// briefed returns the origin of a review with the base that its pull request has now, and records that the task is
// briefed with it: the event may be older, and its base gone.
func (m memory) briefed(
	ctx context.Context, t tasks.Task, o subject.Origin, pr *github.PullRequest,
) (subject.Origin, error) {
	o.Base, o.BaseSHA = pr.GetBase().GetRef(), pr.GetBase().GetSHA()
	err := m.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		p.Briefed = subject.BriefedBase{Task: t.ID, Base: o.Base}
		if p.Review == t.ID {
			p.MoveTo(o)
			p.Review = t.ID
		}
		return nil
	})
	return o, err
}

// asBriefed returns the origin of a review with the base that it was briefed with.
func (m memory) asBriefed(ctx context.Context, t tasks.Task, o subject.Origin) (subject.Origin, error) {
	p, err := m.State(ctx, o.Ref)
	if p.Briefed.Task == t.ID {
		o.Base = p.Briefed.Base
	}
	return o, err
}

// reviewed records that a task's review was posted, with its verdict, and returns the new state. It may be called
// again.
func (m memory) reviewed(
	ctx context.Context, t tasks.Task, o subject.Origin, v hub.Verdict,
) (state subject.State, err error) {
	err = m.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		recordReview(p, t.ID, o, v)
		state = *p
		return nil
	})
	return state, err
}

// pausing returns the note at the end of the summary after the last automatic review.
func pausing(p subject.State) string {
	if p.Reviews < subject.MaxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are no longer reviewed. Comment `/review` for another review, "+
		"or `/resume` to review every push again.", p.Reviews)
}

// recordReview records that a task has reviewed the state of o, and counts an automatic review.
func recordReview(p *subject.State, task string, o subject.Origin, v hub.Verdict) {
	if !p.HasReviewed(o) && !o.ByPerson() {
		p.Reviews++
	}
	p.LastReviewed, p.LastBase, p.ReviewedBy, p.Verdict = o.Head, o.Base, task, v
}
