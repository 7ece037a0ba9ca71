package github

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
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
	n := tasks.Notice{Task: r.task, Ending: e, PullRequest: r.toldPull(), Body: e.Body()}
	n, silent, err = r.Notice(ctx, n)
	if err != nil {
		return r.ReportError("post notice of "+r.o.String(), err)
	}
	if silent {
		return nil
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
		return slices.Contains([]tasks.EndingKind{
			tasks.Refused, tasks.Superseded, tasks.Cancelled, tasks.Taken,
		}, e.Kind), nil
	case e.Kind != tasks.Refused:
		return false, nil
	}
	v, err := r.by.gate.MayRequest(ctx, r.o.Ref, r.task.Actor)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		return true, nil // GitHub does not give permissions to some tokens, for example read-only ones
	}
	return !v.Allowed, err
}

// Notice gives a notice its headline.
func (r *answer) Notice(_ context.Context, n tasks.Notice) (_ tasks.Notice, silent bool, err error) {
	n.Headline = "Answer to " + r.by.people.NameOf(r.task)
	if sentence := n.Ending.Sentence(); sentence != "" {
		n.Headline += ": " + sentence
	}
	return n, false, nil
}

// toldPull returns the pull request with the address of the comment that made the request, if any.
func (r *report) toldPull() forge.PullRequest {
	o := r.o
	p := forge.PullRequest{
		Repo: o.Repo, Number: o.Number, Title: o.Title, Base: o.Base, URL: o.URL,
		Fork: r.task.Profile == agent.Untrusted,
	}
	if o.Asked != nil && o.Asked.URL != "" {
		p.URL = o.Asked.URL
	}
	return p
}
