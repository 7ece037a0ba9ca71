package github

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// reviews is the thread of a pull request's reviews.
func reviews(o origin) string { return "github/" + o.String() + "/review" }

// advance submits the review of a pull request's head, unless there is one already, and ends those of other heads. at is when GitHub last
// changed what we look at. The same head again, by whatever event or look, is the same task.
func (s *Source) advance(ctx context.Context, desk *tasks.Desk, t draft, at time.Time) (said string, err error) {
	o := t.origin
	if !tasks.ValidID(t.ID) {
		return submitted(s.submit(ctx, desk, t)) // the desk says what is wrong with it; nothing of it is to be remembered
	}
	err = s.memory.changeState(ctx, o, func(p *prState) (err error) {
		t.ID, err = p.advance(t.ID, o, at)
		return err
	})
	if err != nil {
		return "", err
	}
	// First: it may have taken over what people had asked of the others for.
	if said, err = submitted(s.submit(ctx, desk, t)); err != nil {
		return "", err
	}
	return said, desk.Supersede(ctx, t.Thread, supersededBy+hub.ShortSHA(o.Head)+".", otherHead(o.Head))
}

// supersededBy begins the reason of a review that ends because another one goes on with it.
const supersededBy = "Superseded by "

// goesOn reports whether it did.
func goesOn(e tasks.Ending) bool {
	return e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, supersededBy)
}

// otherHead finds the reviews that are not of a head.
func otherHead(head string) func(tasks.Task) bool {
	return func(t tasks.Task) bool { return t.Kind == kindReview && headOf(t) != head }
}

// advance notes a head, and says which task is to review it: the one with that ID, or the one that does already.
func (p *prState) advance(id string, o origin, at time.Time) (string, error) {
	if err := p.sees(at); err != nil {
		return "", err
	}
	if p.Head != o.Head {
		p.Head, p.Review = o.Head, ""
	}
	asked := o.byPerson() // who may want what there was already
	switch {
	case p.Paused && !asked:
		return "", ignored{"The pull request was paused by " + p.PausedBy + ".", slog.LevelInfo}
	case p.LastReviewed == o.Head && !asked:
		return "", ignored{"The head was reviewed before.", slog.LevelInfo}
	case p.Reviews >= maxReviews && !asked:
		return "", ignored{"The pull request was reviewed often enough without anybody asking.", slog.LevelInfo}
	case p.Review == "" || asked:
		p.Review = id
	}
	return p.Review, nil
}

// sees notes how new the pull request is that somebody saw. Events may come late and again, and must not bring back what was.
func (p *prState) sees(at time.Time) error {
	if at.Before(p.At) {
		return ignored{"Something newer is known of the pull request.", slog.LevelInfo}
	}
	p.At = at
	return nil
}

// retire ends the reviews of a pull request that nobody wants reviewed any more. When it comes back, they begin anew.
func (s *Source) retire(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	e := d.pull
	if err := s.worksOn(e.GetRepo().GetFullName()); err != nil {
		return "", err
	}
	o := asItIs(e.GetRepo().GetFullName(), e.GetPullRequest())
	err = s.memory.changeState(ctx, o, func(p *prState) error {
		p.Review = ""
		return p.sees(e.GetPullRequest().GetUpdatedAt().Time)
	})
	if err != nil {
		return "", err
	}
	why := unwanted(e.GetPullRequest(), "", "")
	if err := desk.Supersede(ctx, reviews(o), why, func(t tasks.Task) bool { return t.Kind == kindReview }); err != nil {
		return "", err
	}
	return fmt.Sprintf("No reviews of %s any more. %s", o, why), nil
}

// headOf is the commit that a task is about.
func headOf(t tasks.Task) string {
	o, err := originOf(t)
	if err != nil {
		return ""
	}
	return o.Head
}

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
	err := s.memory.changeState(ctx, o, func(p *prState) error {
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

// labeled submits the review of a stranger's pull request to which somebody gave the label that says so. Whether he may say so is asked
// before the run. The payload has the head that was there when he did.
func (s *Source) labeled(ctx context.Context, desk *tasks.Desk, d delivery) (said string, err error) {
	e := d.pull
	if e.GetLabel().GetName() != s.cfg.ForkLabel || !hub.IsFork(e.GetPullRequest()) {
		return "", ignored{"The label means nothing here.", slog.LevelDebug}
	}
	t, err := s.reviewOf(ctx, d)
	if err != nil {
		return "", err
	}
	t.origin.ApprovedBy = e.GetSender().GetLogin()
	if t, err = s.expected(ctx, t, e.GetPullRequest()); err != nil {
		return "", err
	}
	return submitted(s.submit(ctx, desk, t))
}
