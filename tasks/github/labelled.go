package github

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
)

// conflictsLabel on a pull request of others has its conflicts resolved like those of ours, if whoever gave it may write.
const conflictsLabel = "errand:resolve-conflicts"

// labelled reports whether a pull request has a label.
func labelled(pr *github.PullRequest, label string) bool {
	return slices.ContainsFunc(pr.Labels, func(l *github.Label) bool { return l.GetName() == label })
}

// labelledBy is who gave a pull request a label for the last time; ghost where nobody knows. Neither a list nor a pull request tells.
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

// ghost is in whose name GitHub shows what a deleted account has done. It may do nothing.
const ghost = "ghost"

// onOwnBranch reports whether nobody but us pushes to the branch of a pull request.
func onOwnBranch(pr *github.PullRequest) bool {
	return strings.HasPrefix(pr.GetHead().GetRef(), ownBranches) && !hub.IsFork(pr)
}

// ownWork reports whether a pull request is one that we have opened for work of ours.
func ownWork(pr *github.PullRequest, me string) bool {
	return onOwnBranch(pr) && pr.GetUser().GetLogin() == me
}
