package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// GitHub computes whether a pull request can be merged only on request, and has the result some seconds later.
const (
	mergePause    = 10 * time.Second
	mergePatience = 5 * time.Minute
)

// resolver is the prompt for resolving conflicts.
const resolver = `This pull request has merge conflicts with its base, origin/%s. Merge origin/%[1]s and resolve each conflict so that the intent of both sides is kept. Read the history of both sides before you decide. Do not rebase, and change nothing else. Build and run the tests, then commit the merge. In your answer say for each conflict what both sides wanted and how you resolved it. If you cannot tell what is right, abort the merge and say what has to be decided.`

// briefConflict checks that there are conflicts.
func (s *Source) briefConflict(ctx context.Context, t tasks.Task, o origin, _ string) (tasks.Brief, error) {
	k, err := s.autofixTalk(ctx, t, o)
	if err != nil {
		return tasks.Brief{}, err
	}
	me, err := s.forge.Login(ctx)
	if err != nil {
		return tasks.Brief{}, s.sorted("read "+o.String(), err)
	}
	now := s.cfg.Now()
	switch {
	case k.pr.Mergeable == nil && now.Before(askedAt(t.ID).Add(mergePatience)):
		return tasks.Brief{}, &tasks.ErrLater{At: now.Add(mergePause), Why: "GitHub is still computing whether " + o.String() + " can be merged", Tell: "merge"}
	case k.pr.Mergeable == nil || k.pr.GetMergeable():
		return tasks.Brief{}, &tasks.InputError{Sentence: "There are no conflicts with " + o.Base + "."}
	}
	key, err := s.conflicts(ctx, k.gh, o, k.pr)
	if err != nil {
		return tasks.Brief{}, s.sorted("read branch "+o.Base+" of "+o.Repo, err)
	}
	if o.Asked == nil && !ownWork(k.pr, me) {
		by, err := s.labelledBy(ctx, k.gh, o, conflictsLabel)
		if err != nil {
			return tasks.Brief{}, err
		}
		if key += " " + by; !labelled(k.pr, conflictsLabel) {
			return tasks.Brief{}, &tasks.InputError{Sentence: "The pull request no longer has the label " + conflictsLabel + "."}
		}
		if err := k.mustWrite(ctx, o, by); err != nil {
			return tasks.Brief{}, k.never(ctx, key, err)
		}
	}
	if err := k.once(ctx, key); err != nil {
		return tasks.Brief{}, err
	}
	return k.autofixBrief(fmt.Sprintf(resolver, o.Base) + o.added(t)), nil
}

// never records an *tasks.InputError as a final refusal for key, so that the poller does not submit it again.
func (k talk) never(ctx context.Context, key string, why error) error {
	if _, ok := errors.AsType[*tasks.InputError](why); !ok {
		return why
	}
	err := k.memory.changeState(ctx, k.o, func(p *prState) error {
		p.begin(key, k.task.ID)
		return nil
	})
	return cmp.Or(err, why)
}

// conflicts returns the key for the conflicts of a head with its base: after one attempt, one of the two has to move
// before the next. The base SHA in a pull request itself is that of its last push, so the branch is read.
func (s *Source) conflicts(ctx context.Context, gh *github.Client, o origin, pr *github.PullRequest) (key string, err error) {
	owner, name := o.path()
	base, _, err := gh.Repositories.GetBranch(ctx, owner, name, pr.GetBase().GetRef(), 0)
	if err != nil {
		return "", fmt.Errorf("read branch %s: %w", pr.GetBase().GetRef(), err)
	}
	return "conflict " + pr.GetHead().GetSHA() + " " + base.GetCommit().GetSHA(), nil
}

// conflictsLabel requests the resolution of conflicts on a pull request of others, if a person with write access sets
// it.
const conflictsLabel = "errand:resolve-conflicts"

// labelled reports whether a pull request has a label.
func labelled(pr *github.PullRequest, label string) bool {
	return slices.ContainsFunc(pr.Labels, func(l *github.Label) bool { return l.GetName() == label })
}

// labelledBy returns who last added a label to a pull request, or ghost if unknown. Lists and pull requests do not
// contain this.
func (s *Source) labelledBy(ctx context.Context, gh *github.Client, o origin, label string) (login string, err error) {
	owner, name := o.path()
	opt := &github.ListOptions{PerPage: 100}
	same := func(e *github.IssueEvent) *github.IssueEvent { return e }
	for e, err := range hub.Pages(opt, same, func() ([]*github.IssueEvent, *github.Response, error) {
		return gh.Issues.ListIssueEvents(ctx, owner, name, o.Number, opt)
	}) {
		if err != nil {
			return "", s.sorted("read the events of "+o.String(), err)
		}
		if e.GetEvent() == "labeled" && e.GetLabel().GetName() == label {
			login = e.GetActor().GetLogin()
		}
	}
	return cmp.Or(login, ghost), nil
}

// ghost is the name GitHub shows for deleted accounts. It has no permissions.
const ghost = "ghost"

// onOwnBranch reports whether only errand pushes to the branch of a pull request.
func onOwnBranch(pr *github.PullRequest) bool {
	return strings.HasPrefix(pr.GetHead().GetRef(), ownBranches) && !hub.IsFork(pr)
}

// ownWork reports whether errand opened a pull request for its own work.
func ownWork(pr *github.PullRequest, me string) bool {
	return onOwnBranch(pr) && pr.GetUser().GetLogin() == me
}
