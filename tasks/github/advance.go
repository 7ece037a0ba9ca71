package github

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

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
	err = s.changeState(ctx, o, func(p *prState) (err error) {
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
	err = s.changeState(ctx, o, func(p *prState) error {
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
