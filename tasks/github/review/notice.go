package review

import (
	"context"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
)

// Notice completes a notice with the result of the review, and records what it posts.
func (r *Report) Notice(ctx context.Context, n tasks.Notice) (_ tasks.Notice, silent bool, err error) {
	n.Headline = r.headline(n.Ending)
	if found, ok := r.found(n.Ending); ok {
		n, moved, err := r.tellFindings(ctx, n, found)
		return n, moved != "" && !r.o.ByPerson(), err // the next review reports the findings that still apply
	}
	if n.Ending.Kind == tasks.Answered {
		state, err := r.by.memory.reviewed(ctx, r.task, r.o, verdictOf(n.Ending))
		n.Body += pausing(state)
		return n, false, err
	}
	return n, false, nil
}

// headline returns the result of a review without findings in one line.
func (r *Report) headline(e tasks.Ending) string {
	headline := "Review of " + hub.ShortSHA(r.o.Head)
	if e.Kind != tasks.Answered {
		headline = "No review of " + hub.ShortSHA(r.o.Head)
	}
	if sentence := e.Sentence(); sentence != "" {
		headline += ": " + sentence
	}
	return headline
}

// tellFindings adds the new findings of the agent to a notice, and records them as posted. moved is the new head if the
// pull request has got one since; then nothing is recorded.
func (r *Report) tellFindings(
	ctx context.Context, n tasks.Notice, a findings.Answer,
) (_ tasks.Notice, moved string, err error) {
	limits, wrong, err := r.limits(ctx)
	if err != nil {
		return n, "", err
	}
	mark := markOf(r.task, r.o, n.Ending)
	var p findings.Plan
	err = r.by.memory.changeLedger(ctx, r.o.Ref, func(l *findings.Ledger) {
		p = l.Settle(findings.Input{Task: mark.key(), Head: r.o.Head, Full: r.o.Full, Answer: a})
	})
	if err != nil {
		return n, "", err
	}
	p = p.Place(nil, limits)
	if moved, err = r.newHeadUnlessPosted(ctx); err != nil {
		return n, "", err
	}
	result := r.findingsOutcome(n.Ending, p, a.Summary, moved)
	n.Headline, n.Quiet = result.title, !p.News() && !r.o.ByPerson()
	n.Body = p.Notice(a.Summary, pageOf(r.task, r.o)) + wrong
	if moved != "" {
		n.Body = "The pull request has moved on to " + hub.ShortSHA(moved) + " since.\n\n" + n.Body
		return n, moved, nil
	}
	told := func(l *findings.Ledger) { l.Told(mark.key(), p) }
	if err := r.by.memory.changeLedger(ctx, r.o.Ref, told); err != nil {
		return n, "", err
	}
	state, err := r.by.memory.reviewed(ctx, r.task, r.o, result.verdict)
	n.Body += pausing(state)
	return n, "", err
}

// newHeadUnlessPosted returns the new head if the pull request has got one, or "". Once the review is recorded as
// posted it returns "", because then it has to be posted.
func (r *Report) newHeadUnlessPosted(ctx context.Context) (string, error) {
	state, err := r.by.memory.State(ctx, r.o.Ref)
	if err != nil || state.ReviewedBy == r.task.ID {
		return "", err
	}
	head, err := r.newHead(ctx)
	if hub.Permanent(err) {
		r.log.Warn("post notice of a pull request that cannot be read any more", "err", err)
		return "", nil
	}
	return head, err
}
