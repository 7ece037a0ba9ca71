package github

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// missedIssues handles new issues, labels and assignments whose events were lost.
func (v *repositoryPoll) missedIssues(ctx context.Context) error {
	opt := &github.IssueListByRepoOptions{
		State: "open", Sort: "updated", Direction: "desc", Since: v.since,
		ListOptions: github.ListOptions{PerPage: 100},
	}
	var failed []error
	for issue, err := range hub.Pages(&opt.ListOptions, hub.Same, func() ([]*github.Issue, *github.Response, error) {
		return v.GH.Issues.ListByRepo(ctx, v.Owner, v.Name, opt)
	}) {
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("list issues: %w", err))...)
		}
		if issue.IsPullRequest() {
			continue
		}
		err := v.missedIssue(ctx, issue)
		if err == nil {
			continue
		}
		failed = append(failed, fmt.Errorf("%s#%d: %w", v.Repo, issue.GetNumber(), err))
		if v.p.limited(ctx, err) {
			break
		}
	}
	return errors.Join(failed...)
}

// missedIssue handles the text of a new issue, and its label or assignment.
func (v *repositoryPoll) missedIssue(ctx context.Context, issue *github.Issue) error {
	h := remarkEvent{Remark: thread.FromIssue(issue), Ref: v.Ref, Issue: issue, OnIssue: true}
	h.Number = issue.GetNumber()
	if !h.At.Before(v.since) {
		if err := v.missedRemark(ctx, h); err != nil {
			return err
		}
	}
	if subject.HasLabel(issue.Labels, v.p.gate.ForkLabel) || isAssigned(issue, v.me) {
		return v.missedStart(ctx, h)
	}
	return nil
}

// missedStart starts work on an issue that was given the label or assigned since the last poll, unless an event has
// done so.
func (v *repositoryPoll) missedStart(ctx context.Context, h remarkEvent) error {
	label := v.p.gate.ForkLabel
	where := v.Thread
	where.Ref = h.Ref
	last, err := where.LastEvent(ctx, func(e *github.IssueEvent) bool {
		return subject.IsLabelling(e, label) ||
			e.GetEvent() == subject.ActionAssigned && strings.EqualFold(e.GetAssignee().GetLogin(), v.me)
	})
	if err != nil {
		return err
	}
	h.At, h.Author, h.Bot = last.GetCreatedAt().Time, last.GetActor().GetLogin(), last.GetActor().GetType() == "Bot"
	h.Label, h.Assignee = last.GetLabel().GetName(), last.GetAssignee().GetLogin()
	state, err := v.p.memory.State(ctx, h.Ref)
	if err != nil || h.At.Before(v.since) || !h.At.After(state.Started) {
		return err
	}
	return v.accept(ctx, kindStart, h, h.At.Unix())
}

// polledStart submits the work on an issue for which a poll has found the label or an assignment.
func (i *interpreter) polledStart(ctx context.Context, d delivery) (response string, err error) {
	if d.remark.Assignee != "" {
		return i.start(ctx, *d.remark, subject.ActionAssigned)
	}
	return i.start(ctx, *d.remark, subject.ActionLabeled)
}
