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
)

// A repository may be watched alone: its pull requests are reviewed and asked about like those of others, but nothing is ever written to it.
// What comes of that is told on a board, which is somewhere else.

// Board is where it is told what comes of repositories that are only watched.
type Board interface {
	// Watches reports whether "owner/name" is one of them.
	Watches(repo string) bool
	// Tell says a notice once, however often it is called with it, in any process. An *tasks.ErrLater says when to try again. An HTTP
	// attempt inside lasts at most 10 s.
	Tell(ctx context.Context, n tasks.Notice) error
}

// onlyWatched is why something is not done.
const onlyWatched = "Nothing is written to this repository."

// unwritten is what the agent is told there.
const unwritten = "Nothing is written to this repository: whatever was said above of where your answer is posted, people read it in a chat channel, with a link to the pull request.\n"

func (c Config) watched(repo string) bool { return c.Board != nil && c.Board.Watches(repo) }

// watched reports whether nothing may be written to a repository.
func (s *Source) watched(repo string) bool { return s.cfg.watched(repo) }

// notice tells of a task on the board.
type notice struct{ report }

// openNotice has nothing to begin.
func (s *Source) openNotice(ctx context.Context, t tasks.Task, o origin) (tasks.Report, error) {
	gh, err := s.client(ctx, o)
	if err != nil {
		return nil, s.later("reach "+o.String(), err)
	}
	return &notice{report{source: s, gh: gh, origin: o, task: t, log: s.log.With("run", t.ID, "thread", t.Thread)}}, nil
}

// Update shows nothing.
func (r *notice) Update(agent.Event) {}

// Close tells what has come of the task, if that is worth a word.
func (r *notice) Close(ctx context.Context, e tasks.Ending) error {
	silent, err := r.silent(ctx, e)
	if err != nil || silent {
		return err
	}
	n := tasks.Notice{Task: r.task, Ending: e, PullRequest: r.pull(), Headline: r.headline(e), Body: e.Body()}
	if answer, ok := r.answer(e); ok {
		var moved string
		if n, moved, err = r.findings(ctx, n, answer); moved != "" && !r.origin.byPerson() {
			return nil // by the next review, which finds again what counts
		}
	} else if r.task.Kind == kindReview && e.Kind == tasks.Answered {
		var state prState
		state, err = r.source.memory.reviewed(ctx, r.task, r.origin, verdictOf(e))
		n.Body += state.pausing()
	}
	if err != nil {
		return r.source.later("tell of "+r.origin.String(), err)
	}
	if err := r.source.cfg.Board.Tell(ctx, n); err != nil {
		return fmt.Errorf("tell of %s: %w", r.origin, err)
	}
	return nil
}

// silent reports whether nobody misses a word of an ending: of what was not begun, or not ended, although nobody had asked for it, and of
// what somebody asks who may not.
func (r *notice) silent(ctx context.Context, e tasks.Ending) (bool, error) {
	switch {
	case e.Kind == tasks.Withdrawn:
		return true, nil
	case nobodyAsked(r.task, r.origin) && !r.origin.byPerson():
		return slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Cancelled}, e.Kind), nil
	case e.Kind != tasks.Refused:
		return false, nil
	}
	p, err := r.source.may(ctx, r.origin, r.task.Actor)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		return true, nil // GitHub does not say it, to a token that may only read for instance
	}
	return !p.CanWrite(), err
}

// headline is what has come of a task in one line, where it has no findings.
func (r *notice) headline(e tasks.Ending) string {
	said := "Answer to " + r.source.cfg.People.Name(r.task.Source, r.task.Actor)
	if r.task.Kind == kindReview {
		said = "Review of " + hub.ShortSHA(r.origin.Head)
		if e.Kind != tasks.Answered {
			said = "No review of " + hub.ShortSHA(r.origin.Head)
		}
	}
	if sentence := e.Sentence(); sentence != "" {
		said += ": " + sentence
	}
	return said
}

// pull is the pull request, by the address of the comment that asked if one did.
func (r *notice) pull() forge.PullRequest {
	o := r.origin
	p := forge.PullRequest{Repo: o.Repo, Number: o.Number, Title: o.Title, Base: o.Base, URL: o.URL, Fork: r.task.Profile == agent.Untrusted}
	if o.Asked != nil && o.Asked.URL != "" {
		p.URL = o.Asked.URL
	}
	return p
}

// findings completes a notice by what the agent has found and was not told before, and notes that it is told. moved is the head that the pull request
// has got meanwhile, if it is another one; then nothing is noted.
func (r *notice) findings(ctx context.Context, n tasks.Notice, a review.Answer) (_ tasks.Notice, moved string, err error) {
	limits, unknown, err := r.limits(ctx)
	if err != nil {
		return n, "", err
	}
	mark := markOf(r.task, r.origin, n.Ending)
	var p review.Plan
	err = r.source.memory.changeLedger(ctx, r.origin, func(l *review.Ledger) {
		p = l.Settle(review.Input{Task: mark.key(), Head: r.origin.Head, Full: r.origin.Full, Answer: a})
	})
	if err != nil {
		return n, "", err
	}
	p = p.Place(nil, limits)
	if moved, err = r.overtaken(ctx); err != nil {
		return n, "", err
	}
	said := r.found(n.Ending, p, a.Summary, moved)
	n.Headline, n.Body, n.Quiet = said.title, p.Notice(a.Summary, r.where())+misunderstood(unknown), !p.News() && !r.origin.byPerson()
	if moved != "" {
		n.Body = "The pull request has moved on to " + hub.ShortSHA(moved) + " meanwhile.\n\n" + n.Body
		return n, moved, nil
	}
	if err := r.source.memory.changeLedger(ctx, r.origin, func(l *review.Ledger) { l.Told(mark.key(), p) }); err != nil {
		return n, "", err
	}
	state, err := r.source.memory.reviewed(ctx, r.task, r.origin, said.verdict)
	n.Body += state.pausing()
	return n, "", err
}

// overtaken is the head that the pull request has got meanwhile, empty if it has none, and as soon as it is noted that the review is told: then it
// has to be.
func (r *notice) overtaken(ctx context.Context) (string, error) {
	state, err := r.source.memory.state(ctx, r.origin)
	if err != nil || state.ReviewedBy == r.task.ID {
		return "", err
	}
	head, err := r.moved(ctx)
	if hub.Permanent(err) {
		r.log.Warn("tell of a pull request that cannot be read any more", "err", err)
		return "", nil
	}
	return head, err
}
