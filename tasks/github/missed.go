package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// missedRemarks does what was asked for in comments and reviews that no event has told of. open are the pull requests that are open: reviews
// can be listed only of one after the other, and those are looked at that were touched since then. What an event has told of is a task already, or
// an order that changes nothing when it is given again.
func (s *Source) missedRemarks(ctx context.Context, gh *github.Client, desk *tasks.Desk, repo string, open []*github.PullRequest, since time.Time) error {
	var failed []error
	take := func(h heard, err error) (more bool) {
		if err == nil && !h.at.Before(since) && h.number != 0 {
			err = s.missedRemark(ctx, desk, h)
		}
		if err == nil {
			return true
		}
		failed = append(failed, err)
		_, limited := s.limited(err)
		return !limited && ctx.Err() == nil
	}
	for h, err := range s.remarksSince(ctx, gh, repo, since) {
		if !take(h, err) {
			return errors.Join(failed...)
		}
	}
	for _, pr := range open {
		if pr.GetUpdatedAt().Before(since) {
			continue
		}
		for h, err := range s.reviewsOf(ctx, gh, repo, pr) {
			if !take(h, err) {
				return errors.Join(failed...)
			}
		}
	}
	return errors.Join(failed...)
}

// missedRemark takes one, unless it is a task.
func (s *Source) missedRemark(ctx context.Context, desk *tasks.Desk, h heard) error {
	switch _, err := desk.Status(ctx, h.task()); {
	case err == nil:
		return nil
	case !errors.Is(err, tasks.ErrNotFound):
		return err
	}
	h.after = func(do func(context.Context)) { do(ctx) }
	_, err := s.attend(ctx, desk, h)
	if _, not := errors.AsType[ignored](err); not && h.pull != nil {
		_, err = s.heed(ctx, desk, h)
	}
	_, not := errors.AsType[ignored](err)
	if _, input := errors.AsType[*tasks.InputError](err); not || input { // who asked was told
		return nil
	}
	if err != nil {
		return fmt.Errorf("take what was said on %s: %w", h.origin(), err)
	}
	return nil
}
