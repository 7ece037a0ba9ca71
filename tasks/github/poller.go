package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Webhooks get lost: while no front door is up, and at GitHub, which does not send them again by itself. And of some things there are none,
// such as of a conflict. So now and then one front door looks at the pull requests that are open, and submits what it finds. What an event
// has brought before is the same task, and nothing new.

// looked is the action of what no event has brought.
const looked = "looked"

const (
	// looksBack is how long a look goes back at most, and margin by how much our clock and GitHub's may differ.
	looksBack = 7 * 24 * time.Hour
	margin    = time.Minute
	// maxLooked is how many pull requests of a repository are looked at, those that were touched last.
	maxLooked = 100
)

// lookout looks at once and then again and again, until ctx ends.
func (s *Source) lookout(ctx context.Context, desk *tasks.Desk) {
	for {
		pause := s.cfg.Look
		err := s.lookIfDue(ctx, desk)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("look for missed events", "err", err)
			if wait, limited := s.limited(err); limited {
				pause = max(pause, wait)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// lookIfDue looks at what may have been missed.
func (s *Source) lookIfDue(ctx context.Context, desk *tasks.Desk) error {
	begun := s.cfg.Now()
	seen, mine, err := s.turn(ctx, begun)
	if err != nil || !mine {
		return err
	}
	return s.lookAround(ctx, desk, begun, seen)
}

// looks is what is remembered of looks.
type looks struct {
	Last time.Time            `json:"last"` // when one was begun
	Seen map[string]time.Time `json:"seen"` // by repository, when the last one was begun that saw all of it
}

const looksMemo = "github/looks"

// turn takes the next look for this front door, if it is time for one and no other has it. seen says of each repository until when nothing was
// missed there; before its very first look nothing was.
func (s *Source) turn(ctx context.Context, now time.Time) (seen map[string]time.Time, mine bool, err error) {
	err = s.changeLooks(ctx, func(l *looks) {
		if mine = !now.Before(l.Last.Add(s.cfg.Look)); !mine {
			return
		}
		seen = map[string]time.Time{}
		for _, repo := range s.cfg.Repositories {
			if seen[repo] = now; !l.Seen[repo].IsZero() {
				seen[repo] = l.Seen[repo]
			}
		}
		l.Last, l.Seen = now, seen
	})
	return seen, mine, err
}

func (s *Source) changeLooks(ctx context.Context, change func(*looks)) error {
	memo := intake.Memo[looks]{Memory: s.cfg.Memory, Name: looksMemo, Log: s.cfg.Log}
	return memo.Change(ctx, func(l *looks) error {
		if l.Seen == nil {
			l.Seen = map[string]time.Time{}
		}
		change(l)
		return nil
	})
}

// lookAround looks at all repositories. What does not work in one is no reason not to look at the next, but for GitHub's rate limit, nor to look
// further back there the next time.
func (s *Source) lookAround(ctx context.Context, desk *tasks.Desk, begun time.Time, seen map[string]time.Time) error {
	var failed []error
	for _, repo := range s.cfg.Repositories {
		since := seen[repo].Add(-margin)
		if back := begun.Add(-looksBack); since.Before(back) {
			since = back
		}
		all, err := s.look(ctx, desk, repo, since)
		if all {
			err = errors.Join(err, s.changeLooks(ctx, func(l *looks) { l.Seen[repo] = begun }))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("look at %s: %w", repo, err))
			if _, limited := s.limited(err); limited || ctx.Err() != nil {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// limited is retryAfter, also for an error that was sorted before.
func (s *Source) limited(err error) (time.Duration, bool) {
	if later, ok := errors.AsType[*tasks.ErrLater](err); ok {
		return later.At.Sub(s.cfg.Now()), true
	}
	return hub.RetryAfter(err)
}

// look looks at one repository. What does not work with one pull request is no reason not to look at the next. all reports whether nothing was
// missed that happened since then. Failed checks and conflicts are looked at however old they are, so they do not count.
func (s *Source) look(ctx context.Context, desk *tasks.Desk, repo string, since time.Time) (all bool, err error) {
	me, err := s.forge.Login(ctx)
	if err != nil {
		return false, err
	}
	o := origin{Repo: repo}
	gh, err := s.client(ctx, o)
	if err != nil {
		return false, err
	}
	owner, name := o.path()
	list, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{
		State: "open", Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: maxLooked},
	})
	if err != nil {
		return false, fmt.Errorf("list pull requests: %w", err)
	}
	all = true
	var failed []error
	for _, pr := range list {
		l := sight{s, gh, desk, pr, asItIs(repo, pr)}
		l.o.Action = looked
		for _, wants := range []struct {
			it, once bool
			do       func(context.Context) error
		}{
			{!onOwnBranch(pr) && !pr.GetUpdatedAt().Before(since), true, func(ctx context.Context) error { return l.review(ctx, me) }},
			{ownWork(pr, me), false, l.failures},
			{ownWork(pr, me) || !hub.IsFork(pr) && labelled(pr, conflictsLabel), false, func(ctx context.Context) error { return l.conflict(ctx, me) }},
		} {
			if !wants.it {
				continue
			}
			err := wants.do(ctx)
			if _, ok := errors.AsType[ignored](err); err == nil || ok {
				continue
			}
			all = all && !wants.once
			failed = append(failed, fmt.Errorf("%s: %w", l.o, err))
			if _, limited := s.limited(err); limited || ctx.Err() != nil {
				return false, errors.Join(failed...)
			}
		}
	}
	err = s.missedRemarks(ctx, gh, desk, repo, list, since)
	return all && err == nil, errors.Join(append(failed, err)...)
}

// sight is a pull request as a look finds it.
type sight struct {
	*Source
	gh   *github.Client
	desk *tasks.Desk
	pr   *github.PullRequest
	o    origin
}

// review submits the review that an event should have brought.
func (l sight) review(ctx context.Context, me string) error {
	author := l.pr.GetUser().GetLogin()
	var why error
	if no := unwanted(l.pr, author, me); no != "" {
		why = ignored{why: no}
	}
	id := tasks.NewID(l.cfg.Now(), l.Name(), fmt.Sprintf("look-%d-%s", l.o.Number, hub.ShortSHA(l.o.Head)))
	t := l.reviewTask(id, author, l.pr, l.o)
	_, err := l.succeed(ctx, l.desk, t, l.pr, l.pr.GetUpdatedAt().Time, why)
	return err
}

// failures submits the mending of failed checks.
func (l sight) failures(ctx context.Context) error {
	c, err := l.ciStatus(ctx, l.o, l.o.Head)
	if err != nil {
		return err
	}
	if len(c.Failed) == 0 || c.Pending > 0 || isUnpaid(c) {
		return nil
	}
	return l.missed(ctx, kindCheckFailure, "Failed checks", failureKey(c, l.o.Head))
}

// conflict submits the resolution of conflicts. Lists do not tell of them, and GitHub begins to find out when it is asked for the first time:
// then the next look sees it.
func (l sight) conflict(ctx context.Context, me string) error {
	owner, name := l.o.path()
	pr, _, err := l.gh.PullRequests.Get(ctx, owner, name, l.o.Number)
	if err != nil {
		return fmt.Errorf("read pull request: %w", err)
	}
	if pr.Mergeable == nil || pr.GetMergeable() {
		return nil
	}
	key, err := l.conflicts(ctx, l.gh, l.o, pr)
	if err != nil {
		return err
	}
	if !ownWork(pr, me) {
		by, err := l.labelledBy(ctx, l.gh, l.o, conflictsLabel)
		if err != nil {
			return err
		}
		key += " " + by
	}
	return l.missed(ctx, kindMergeConflict, "Conflicts", key)
}

// missed submits the work that key stands for, unless a task has begun it.
func (l sight) missed(ctx context.Context, kind, why, key string) error {
	p, err := l.memory.state(ctx, l.o)
	if err != nil || p.Begun[key] != "" {
		return err
	}
	_, err = l.mend(ctx, l.desk, kind, why, l.pr, l.o)
	return err
}

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
