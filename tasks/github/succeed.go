package github

import (
	"context"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// A push makes the review of the head before it pointless. What people wanted of that one they want of the next: where somebody had asked for
// it, the review of the new head is his, has his words, and signs his comment. For a stranger's pull request the word was for the head before,
// so nobody has asked there, and the review of that head ends all the same.

// succeed submits the review of a pull request's head in place of those of heads before it. why is for what reason nobody wants it, nil if
// it is wanted; at is when GitHub last changed the pull request as it is seen here.
func (s *Source) succeed(ctx context.Context, desk *tasks.Desk, t draft, pr *github.PullRequest, at time.Time, why error) (said string, err error) {
	if err := s.outdate(ctx, desk, t, pr, at); err != nil {
		return "", err
	}
	t, inherited, err := s.inherit(ctx, desk, t, pr)
	if err != nil {
		return "", err
	}
	if why != nil && !inherited {
		return "", why
	}
	if t, err = s.expected(ctx, t, pr); err != nil {
		return "", err
	}
	return s.advance(ctx, desk, t, at)
}

// outdate ends the reviews of other heads of a stranger's pull request: what is there now nobody may have agreed to, and what was agreed to is
// not there any more.
func (s *Source) outdate(ctx context.Context, desk *tasks.Desk, t draft, pr *github.PullRequest, at time.Time) error {
	if !hub.IsFork(pr) {
		return nil
	}
	o := t.origin
	err := s.changeState(ctx, o, func(p *prState) error {
		if err := p.sees(at); err != nil {
			return err
		}
		if p.Head != o.Head {
			p.Head, p.Review = o.Head, ""
		}
		return nil
	})
	if err != nil {
		return err
	}
	return desk.Supersede(ctx, t.Thread, "The head of the pull request has moved to "+hub.ShortSHA(o.Head)+".", otherHead(o.Head))
}

// inherit makes a review that of those who have asked for one of another head that has not ended, and reports whether there are any. What we
// have pushed ourselves ends no review. Who may not ask has no say in the next one either, or anybody could have it refused; and what a bot has
// asked for was done once, and counted.
func (s *Source) inherit(ctx context.Context, desk *tasks.Desk, t draft, pr *github.PullRequest) (_ draft, inherited bool, err error) {
	if hub.IsFork(pr) || pr.GetState() == "closed" || s.isUs(ctx, t.Actor) {
		return t, false, nil
	}
	o := t.origin
	open, err := desk.Open(ctx, t.Thread)
	if err != nil {
		return t, false, err
	}
	for _, st := range open {
		before, err := originOf(st.Task)
		if err != nil || !otherHead(o.Head)(st.Task) {
			continue
		}
		switch {
		case !before.byPerson(), before.byBot(), s.mayNot(ctx, o, st.Task.Actor):
			o.Also = append(o.Also, before.spots()...)
		case before.Asked != nil: // the latest word counts, and the widest wish
			o.Also = append(o.spots(), before.Also...)
			o.Asked, o.Full = before.Asked, o.Full || before.Full
			t.Actor, t.Class, t.Prompt, inherited = st.Task.Actor, tasks.Interactive, st.Task.Prompt, true
		case o.Asked == nil: // our review was requested, which has no words
			o.Action, t.Actor, inherited = requestedReview, st.Task.Actor, true
		}
	}
	t.origin = o
	return t, inherited, nil
}

// mayNot reports whether GitHub says now that an account may not ask for anything. Before the run it is asked again.
func (s *Source) mayNot(ctx context.Context, o origin, login string) bool {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	p, err := s.may(ctx, o, login)
	return err == nil && !p.CanWrite()
}

// isUs reports whether a login is known to be ours.
func (s *Source) isUs(ctx context.Context, login string) bool {
	ctx, cancel := context.WithTimeout(ctx, loginPatience)
	defer cancel()
	me, err := s.forge.Login(ctx)
	return err == nil && me == login
}
