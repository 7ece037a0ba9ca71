package github

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/intake"
)

// A repository may be only watched: its pull requests are reviewed and discussed like others, but nothing is written to
// it. The results go to a board elsewhere, such as a Slack channel.

// Board shows the results of repositories that are only watched.
type Board interface {
	// Watches reports whether "owner/name" is such a repository.
	Watches(repo string) bool
	intake.Board
}

// watchedSystem is added to the agent's prompt for such a repository.
const watchedSystem = "Nothing is written to this repository. " +
	"Contrary to the above, your answer is posted in a chat channel, with a link to the pull request.\n"

// watched reports whether a repository is only watched.
func (c Config) watched(repo string) bool { return c.Board != nil && c.Board.Watches(repo) }

// tell posts the result of a task on the board, unless it is silent.
func (r *report) tell(ctx context.Context, e tasks.Ending) error {
	silent, err := r.silentOnBoard(ctx, e)
	if err != nil || silent {
		return err
	}
	n := tasks.Notice{Task: r.task, Ending: e, PullRequest: r.toldPull(), Headline: r.headline(e), Body: e.Body()}
	if answer, ok := r.answer(e); ok {
		var moved string
		if n, moved, err = r.tellFindings(ctx, n, answer); moved != "" && !r.o.ByPerson() {
			return nil // the next review reports the findings that still apply
		}
	} else if r.task.Kind == subject.KindReview && e.Kind == tasks.Answered {
		var state subject.State
		state, err = reviewsOf(r.by.memory).reviewed(ctx, r.task, r.o, verdictOf(e))
		n.Body += pausing(state)
	}
	if err != nil {
		return r.ReportError("post notice of "+r.o.String(), err)
	}
	if err := r.by.board.Tell(ctx, n); err != nil {
		return fmt.Errorf("post notice of %s: %w", r.o, err)
	}
	return nil
}

// silentOnBoard reports whether an ending is not posted: of an automatic task that did not start or finish, and of a
// request by a person who has no permission.
func (r *report) silentOnBoard(ctx context.Context, e tasks.Ending) (bool, error) {
	switch {
	case e.Kind == tasks.Withdrawn:
		return true, nil
	case subject.IsAutomatic(r.task, r.o) && !r.o.ByPerson():
		return slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Cancelled}, e.Kind), nil
	case e.Kind != tasks.Refused:
		return false, nil
	}
	v, err := r.by.gate.MayRequest(ctx, r.o.Ref, r.task.Actor)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		return true, nil // GitHub does not give permissions to some tokens, for example read-only ones
	}
	return !v.Allowed, err
}

// headline returns the result of a task without findings in one line.
func (r *report) headline(e tasks.Ending) string {
	headline := "Answer to " + r.by.people.NameOf(r.task)
	if r.task.Kind == subject.KindReview {
		headline = "Review of " + hub.ShortSHA(r.o.Head)
		if e.Kind != tasks.Answered {
			headline = "No review of " + hub.ShortSHA(r.o.Head)
		}
	}
	if sentence := e.Sentence(); sentence != "" {
		headline += ": " + sentence
	}
	return headline
}

// fromFork reports whether the pull request of a task comes from a fork, to which errand pushes nothing.
func fromFork(t tasks.Task) bool { return t.Profile == agent.Untrusted }

// toldPull returns the pull request with the address of the comment that made the request, if any.
func (r *report) toldPull() forge.PullRequest {
	o := r.o
	p := forge.PullRequest{
		Repo: o.Repo, Number: o.Number, Title: o.Title, Base: o.Base, URL: o.URL, Fork: fromFork(r.task),
	}
	if o.Asked != nil && o.Asked.URL != "" {
		p.URL = o.Asked.URL
	}
	return p
}

// tellFindings adds the new findings of the agent to a notice, and records them as posted. moved is the new head if the
// pull request has got one since; then nothing is recorded.
func (r *report) tellFindings(
	ctx context.Context, n tasks.Notice, a review.Answer,
) (_ tasks.Notice, moved string, err error) {
	limits, unknown, err := r.limits(ctx)
	if err != nil {
		return n, "", err
	}
	mark := markOf(r.task, r.o, n.Ending)
	var p review.Plan
	err = reviewsOf(r.by.memory).changeLedger(ctx, r.o.Ref, func(l *review.Ledger) {
		p = l.Settle(review.Input{Task: mark.key(), Head: r.o.Head, Full: r.o.Full, Answer: a})
	})
	if err != nil {
		return n, "", err
	}
	p = p.Place(nil, limits)
	if moved, err = r.newHeadUnlessPosted(ctx); err != nil {
		return n, "", err
	}
	result := r.findingsOutcome(n.Ending, p, a.Summary, moved)
	n.Headline, n.Body, n.Quiet = result.title, p.Notice(a.Summary, r.page())+settingsErrors(unknown), !p.News() &&
		!r.o.ByPerson()
	if moved != "" {
		n.Body = "The pull request has moved on to " + hub.ShortSHA(moved) + " since.\n\n" + n.Body
		return n, moved, nil
	}
	told := func(l *review.Ledger) { l.Told(mark.key(), p) }
	if err := reviewsOf(r.by.memory).changeLedger(ctx, r.o.Ref, told); err != nil {
		return n, "", err
	}
	state, err := reviewsOf(r.by.memory).reviewed(ctx, r.task, r.o, result.verdict)
	n.Body += pausing(state)
	return n, "", err
}

// newHeadUnlessPosted returns the new head if the pull request has got one, or "". Once the review is recorded as
// posted it returns "", because then it has to be posted.
func (r *report) newHeadUnlessPosted(ctx context.Context) (string, error) {
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
