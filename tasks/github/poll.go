package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Webhooks are lost while no front door runs, and GitHub does not resend them. Conflicts have no webhooks. So from time
// to time one front door polls the open pull requests and submits tasks for what it finds. If an event was handled
// before, the poll submits the same task, which is a duplicate.

const (
	pollMemo = "github/looks"
	// maxPollBack is how far back a poll goes at most, and margin the assumed clock difference to GitHub.
	maxPollBack = 7 * 24 * time.Hour
	margin      = time.Minute
	// minPolled is how many open pull requests of a repository are polled at least, the most recently updated ones, for
	// failed checks and conflicts, which have no time. Those that were updated since the last poll are polled all.
	minPolled = 100
)

// poller polls repositories for missed events. Only the goroutine of run uses it.
type poller struct {
	*interpreter
	inbox        intake.Inbox
	repositories []string
	every        time.Duration
	quickEvery   time.Duration // between two quick polls, which replace webhooks; 0 for none
}

// run polls immediately and then repeatedly, until ctx ends.
func (p *poller) run(ctx context.Context) {
	for {
		pause := cmp.Or(p.quickEvery, p.every)
		err := p.pollIfDue(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("poll for missed events", "err", err)
			if wait, limited := p.api.RetryAfter(err); limited {
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

// pollIfDue polls if a poll is due.
func (p *poller) pollIfDue(ctx context.Context) error {
	if p.quickEvery > 0 {
		ctx = hub.Repeated(ctx)
	}
	begun := p.now()
	before, quick, mine, err := p.claimTurn(ctx, begun)
	if err != nil || !mine {
		return err
	}
	return p.pollAll(ctx, begun, before, quick)
}

// pollState records the polls. GitHub's rate limit allows far fewer repositories than fit into one value.
type pollState struct {
	Last  time.Time            `json:"last"`           // start of the last poll
	Quick time.Time            `json:"quick,omitzero"` // start of the last quick poll
	Seen  map[string]time.Time `json:"seen"`           // by repository: start of the last complete poll
}

// claimTurn claims the next poll for this front door, if one is due and no other has it. before.Seen has for each
// repository the time until which no event was missed; before the first poll none was. A quick poll leaves these times
// as they are, so that it asks the same until the next complete one, and GitHub mostly answers that nothing changed.
func (p *poller) claimTurn(ctx context.Context, now time.Time) (before pollState, quick, mine bool, err error) {
	err = p.changePollState(ctx, func(l *pollState) {
		mine = !now.Before(l.Last.Add(p.every))
		quick = !mine && p.quickEvery > 0 && !now.Before(l.Quick.Add(p.quickEvery))
		if mine {
			seen := map[string]time.Time{}
			for _, repo := range p.repositories {
				if seen[repo] = now; !l.Seen[repo].IsZero() {
					seen[repo] = l.Seen[repo]
				}
			}
			l.Last, l.Quick, l.Seen = now, now, seen
		} else if quick {
			mine, l.Quick = true, now
		}
		before = *l
	})
	return before, quick, mine, err
}

func (p *poller) changePollState(ctx context.Context, change func(*pollState)) error {
	memo := intake.Memo[pollState]{Memory: p.memory.Store, Name: pollMemo, Log: p.log}
	return memo.Change(ctx, func(l *pollState) error {
		if l.Seen == nil {
			l.Seen = map[string]time.Time{}
		}
		change(l)
		return nil
	})
}

// pollAll polls all repositories. If one fails, the others are still polled, except after a rate limit. The next
// poll of the failed one covers the same time again.
func (p *poller) pollAll(ctx context.Context, begun time.Time, before pollState, quick bool) error {
	var failed []error
	for _, repo := range p.repositories {
		if before.Seen[repo].IsZero() {
			continue // of a quick poll: the next complete one begins with it
		}
		if err := p.pollOne(ctx, repo, begun, before, quick); err != nil {
			failed = append(failed, fmt.Errorf("poll %s: %w", repo, err))
			if p.limited(ctx, err) {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// pollOne polls one repository, and records until when nothing was missed.
func (p *poller) pollOne(ctx context.Context, repo string, begun time.Time, before pollState, quick bool) (err error) {
	v := &repositoryPoll{p: p, since: before.Seen[repo].Add(-margin), quick: quick}
	if back := begun.Add(-maxPollBack); v.since.Before(back) {
		v.since = back
	}
	if v.me, err = p.api.Forge.Login(ctx); err != nil {
		return err
	}
	if v.Thread, err = p.api.Reach(ctx, thread.Ref{Repo: repo}); err != nil {
		return err
	}
	all, err := v.pollRepository(ctx)
	if all && !quick { // what failed nevertheless is found again however old it is
		err = errors.Join(err, p.changePollState(ctx, func(l *pollState) { l.Seen[repo] = begun }))
	}
	return err
}

// repositoryPoll is a poll of one repository.
type repositoryPoll struct {
	thread.Thread
	p     *poller
	me    string // errand's login
	since time.Time
	quick bool
}

// pollRepository polls the repository. If one pull request fails, the others are still handled. all reports whether
// every event since then was covered. Failed checks and conflicts do not count, because they are found however old they
// are; a quick poll skips them.
func (v *repositoryPoll) pollRepository(ctx context.Context) (all bool, err error) {
	latest, err := v.latestPulls(ctx)
	if err != nil {
		return false, err
	}
	list, err := v.openPulls(ctx, latest)
	if err != nil {
		return false, err
	}
	all = true
	var failed []error
	for _, pr := range list {
		l := polledPull{Thread: v.Thread, v: v, o: subject.OfPull(v.Repo, pr), pr: pr}
		l.Ref, l.o.Action = l.o.Ref, subject.ActionPolled
		w := autofix.Work{Thread: l.Thread, About: l.o, Pull: pr}
		own := autofix.OwnWork(pr, v.me)
		conflict := own || !hub.IsFork(pr) && subject.HasLabel(pr.Labels, autofix.ConflictsLabel)
		for _, wants := range []struct {
			it, once bool
			do       func() error
		}{
			{!own && !pr.GetUpdatedAt().Before(v.since), true, func() error { return l.review(ctx) }},
			{!v.quick && own, false, func() error { return v.p.fixes.MissedFailures(ctx, v.p.desk, w) }},
			{!v.quick && conflict, false, func() error { return v.p.fixes.MissedConflict(ctx, v.p.desk, w, own) }},
		} {
			if !wants.it {
				continue
			}
			err := wants.do()
			if _, ok := errors.AsType[subject.Ignored](err); err == nil || ok {
				continue
			}
			all = all && !wants.once
			failed = append(failed, fmt.Errorf("%s: %w", l.o, err))
			if v.p.limited(ctx, err) {
				return false, errors.Join(failed...)
			}
		}
	}
	err = v.missedConversations(ctx, latest, list)
	return all && err == nil, errors.Join(append(failed, err)...)
}

// missedConversations handles what people wrote and did on pull requests and issues.
func (v *repositoryPoll) missedConversations(ctx context.Context, latest, open []*github.PullRequest) error {
	if err := v.missedRemarks(ctx, open); err != nil {
		return err
	}
	if err := v.missedIssues(ctx); err != nil {
		return err
	}
	if v.quick {
		return nil
	}
	return v.missedOutcomes(ctx, latest)
}

// limited reports whether a poll cannot go on after an error.
func (p *poller) limited(ctx context.Context, err error) bool {
	_, limited := p.api.RetryAfter(err)
	return limited || ctx.Err() != nil
}

// latestPulls lists the pull requests of the polled repository that were updated since the last poll, the latest first.
// It lists the closed ones, too: in a list of open ones, those after one that is closed meanwhile move up, and the
// first of the next page would be on a page that was read before. In this list pull requests only move to the front,
// and those are in the next list.
func (v *repositoryPoll) latestPulls(ctx context.Context) (list []*github.PullRequest, err error) {
	opt := &github.PullRequestListOptions{
		State: "all", Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: 30},
	}
	for pr, err := range hub.Pages(&opt.ListOptions, hub.Same, func() ([]*github.PullRequest, *github.Response, error) {
		return v.GH.PullRequests.List(ctx, v.Owner, v.Name, opt)
	}) {
		if err != nil {
			return nil, fmt.Errorf("list updated pull requests: %w", err)
		}
		if pr.GetUpdatedAt().Before(v.since) {
			break
		}
		list = append(list, pr)
	}
	return list, nil
}

// openPulls returns the open ones of the latest pull requests. For a complete poll it adds those that were updated
// before, as far as they are among the minPolled that were updated last.
func (v *repositoryPoll) openPulls(
	ctx context.Context, latest []*github.PullRequest,
) (list []*github.PullRequest, err error) {
	for _, pr := range latest {
		if pr.GetState() == "open" {
			list = append(list, pr)
		}
	}
	if v.quick {
		return list, nil
	}
	more, _, err := v.GH.PullRequests.List(ctx, v.Owner, v.Name, &github.PullRequestListOptions{
		State: "open", Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{PerPage: minPolled},
	})
	if err != nil {
		return nil, fmt.Errorf("list open pull requests: %w", err)
	}
	for _, pr := range more {
		same := func(l *github.PullRequest) bool { return l.GetNumber() == pr.GetNumber() }
		if !slices.ContainsFunc(latest, same) {
			list = append(list, pr)
		}
	}
	return list, nil
}

// polledPull is an open pull request that a poll has found.
type polledPull struct {
	thread.Thread
	v  *repositoryPoll
	o  subject.Origin
	pr *github.PullRequest
}

// review submits the review for which an event was missed. A quick poll submits reviews of new heads and bases only.
func (l polledPull) review(ctx context.Context) error {
	author := l.pr.GetUser().GetLogin()
	state, err := l.v.p.memory.State(ctx, l.Ref)
	if err != nil || l.v.quick && state.IsAt(l.o) {
		return err
	}
	if state.Head != l.o.Head { // its event was missed, or Redis has forgotten it
		if done, err := l.Forge.HasVerdict(ctx, l.GH, l.o.Repo, l.o.Head); done || err != nil {
			return err
		}
	}
	id := tasks.NewID(l.Now(), sourceName, fmt.Sprintf("look-%d-%s", l.o.Number, hub.ShortSHA(l.o.Head)))
	t := l.v.p.reviews.Task(id, author, l.pr, l.o)
	t.Me, t.Why.Why = l.v.me, review.Unwanted(l.pr, author, l.v.me, false)
	if hub.IsFork(l.pr) && subject.HasLabel(l.pr.Labels, l.v.p.gate.ForkLabel) {
		if err := l.v.p.reviews.MissedApproval(ctx, l.Thread, t, l.v.since, state.Started); err != nil {
			return err
		}
	}
	_, err = l.v.p.reviews.Replace(ctx, t)
	return err
}

// missedRemarks handles requests in comments and reviews whose events were lost. Reviews can be listed only for one
// pull request at a time, so it reads those of the open pull requests that were updated since then. If an event was
// handled, its task exists already, or its command changes nothing when it is repeated.
func (v *repositoryPoll) missedRemarks(ctx context.Context, open []*github.PullRequest) error {
	var failed []error
	for h, err := range v.remarks(ctx, open) {
		if err == nil && !h.At.Before(v.since) && h.Number != 0 {
			err = v.missedRemark(ctx, h)
		}
		if err == nil {
			continue
		}
		if failed = append(failed, err); v.p.limited(ctx, err) {
			break
		}
	}
	return errors.Join(failed...)
}

// remarks iterates over what missedRemarks reads. A list ends with its first error, and the next one begins.
func (v *repositoryPoll) remarks(ctx context.Context, open []*github.PullRequest) iter.Seq2[remarkEvent, error] {
	return func(yield func(remarkEvent, error) bool) {
		for _, list := range []thread.Remarks{v.Comments(ctx, v.since), v.LineComments(ctx, v.since)} {
			for r, err := range list {
				if !yield(v.onPage(r), err) {
					return
				}
			}
		}
		for _, pr := range open {
			if pr.GetUpdatedAt().Before(v.since) {
				continue
			}
			one := v.Thread
			one.Number = pr.GetNumber()
			for r, err := range one.Reviews(ctx) {
				if !yield(remarkEvent{Remark: r, Ref: one.Ref, Pull: pr}, err) {
					return
				}
			}
		}
	}
}

var pageForm = regexp.MustCompile(`/(pull|issues)/([0-9]+)#`)

// onPage returns a comment with the pull request or issue that its address names, or with none.
func (v *repositoryPoll) onPage(r thread.Remark) remarkEvent {
	h := remarkEvent{Remark: r, Ref: v.Ref}
	if m := pageForm.FindStringSubmatch(r.URL); m != nil {
		h.Number, _ = strconv.Atoi(m[2])
		h.OnIssue = m[1] == "issues"
	}
	return h
}

// missedRemark has a remark handled that may be for errand, unless it has a task. An edited one is handled again.
func (v *repositoryPoll) missedRemark(ctx context.Context, h remarkEvent) error {
	work := h.Place == thread.InIssue || h.Place == thread.InReview && h.Pull.GetUser().GetLogin() == v.me
	if said := readRemark(h.Body, v.me); !work && !said.asks() && !said.mistaken {
		return nil
	}
	if _, err := v.p.desk.Status(ctx, h.task()); !errors.Is(err, tasks.ErrNotFound) {
		return err
	}
	return v.accept(ctx, kindRemark, h, max(h.At.Unix(), h.Edited.Unix()))
}

// accept gives the inbox what is found at a time of GitHub. A poll finds again what was said since the last complete
// one, a week ago at most: the inbox knows it by its ID for as long.
func (v *repositoryPoll) accept(ctx context.Context, kind string, h remarkEvent, at int64) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode remark on %s: %w", h.Ref, err)
	}
	id := fmt.Sprintf("%s-%s-%d", strings.ReplaceAll(kind, " ", "-"), h.Identity(), at)
	err = v.p.inbox.Accept(ctx, intake.Event{
		Source: sourceName, Kind: kind, ID: id, Body: raw, Known: maxPollBack, Found: true,
	})
	if err != nil {
		return fmt.Errorf("handle remark on %s: %w", h.Ref, err)
	}
	return nil
}

// missedOutcomes counts the findings of those of the latest pull requests that were closed, unless their events did.
func (v *repositoryPoll) missedOutcomes(ctx context.Context, latest []*github.PullRequest) error {
	var failed []error
	for _, pr := range latest {
		if pr.GetState() == "open" {
			continue
		}
		err := v.p.reviews.CloseFindings(ctx, subject.OfPull(v.Repo, pr), pr.MergedAt != nil)
		if hub.Permanent(err) {
			v.p.log.Warn("count findings", "err", err)
			continue
		}
		failed = append(failed, err)
		if v.p.limited(ctx, err) {
			break
		}
	}
	return errors.Join(failed...)
}
