package github

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// An issue is a conversation like that of a pull request, on the base branch instead of a head. Comments on it, and the
// issue itself when it is opened, are requests in the same way. In addition, people with write access can have errand
// work on the issue as a whole, by a label or by assigning it.

// issueWork is the work on an issue as a whole.
var issueWork = work{kind: subject.KindIssue, profile: agent.Write}

// handleNewIssue answers a new issue that requests nothing, if the repository's settings switch that on.
func (i *interpreter) handleNewIssue(ctx context.Context, h remarkEvent) (response string, err error) {
	c, err := i.settings.Read(ctx, h.Ref)
	if err != nil {
		return "", err
	}
	if c.Issues != settings.IssuesAuto {
		return "", notAddressed
	}
	return i.start(ctx, h, subject.ActionOpened)
}

// startIssue submits the work on an issue that was given the label or assigned to errand.
func (i *interpreter) startIssue(ctx context.Context, d delivery) (response string, err error) {
	h := *d.remark
	h.Author, h.At = h.by, h.Issue.GetUpdatedAt().Time
	return i.start(ctx, h, d.action)
}

// start submits the work on an issue as a whole, which the author of h requested at h.at.
func (i *interpreter) start(ctx context.Context, h remarkEvent, action string) (response string, err error) {
	if err := i.mayStart(ctx, h, action); err != nil {
		return "", err
	}
	open, err := i.desk.Open(ctx, h.thread())
	if err != nil {
		return "", err
	}
	for _, st := range open {
		if h.asksTheSame(st.Task) {
			return "Task " + st.Task.ID, i.noteStart(ctx, h, false)
		}
	}
	t, err := i.wholeIssueTask(ctx, h, action)
	if err != nil {
		return "", err
	}
	receipt, err := t.Submit(ctx, i.desk)
	if err != nil {
		return "", err
	}
	if err := i.noteStart(ctx, h, true); err != nil {
		return "", err
	}
	if err := i.forgetEnded(ctx, h); err != nil {
		return "", err
	}
	if receipt.New {
		i.react(ctx, h, eyes)
	}
	return "Task " + receipt.ID, nil
}

// mayStart ignores an event that does not start work on an issue.
func (i *interpreter) mayStart(ctx context.Context, h remarkEvent, action string) error {
	if err := i.worksOn(h.Repo); err != nil {
		return err
	}
	if action != subject.ActionOpened {
		if err := i.ignoreUnrelated(ctx, h); err != nil {
			return err
		}
	}
	if i.watched(h.Repo) {
		return subject.IgnoreQuietly(subject.OnlyWatched)
	}
	if !i.gate.MayCommand(h.Author, h.Bot).Allowed {
		return subject.Ignore("A bot requested it.")
	}
	if h.Issue.GetState() == "closed" {
		return subject.Ignore("The issue is closed.")
	}
	if i.gate.MayNot(ctx, h.Ref, h.Author) { // the label may be that of a template
		return subject.Ignore(h.Author + " has no write access.")
	}
	return i.ignoreOvertaken(ctx, h)
}

// wholeIssueTask returns the task of working on an issue as a whole. The agent gets the text of the issue as what the
// work is about.
func (i *interpreter) wholeIssueTask(ctx context.Context, h remarkEvent, action string) (subject.Draft, error) {
	h.said = said{}
	t, err := i.requestedIssueTask(ctx, h, issueWork)
	if err != nil {
		return subject.Draft{}, err
	}
	t.About.Action = action
	if action == subject.ActionOpened {
		t.Class = tasks.Background // unrequested work can wait
	}
	t.Prompt = fmt.Sprintf("Issue #%d of %s: %s", h.Number, h.Repo, t.About.Title)
	return t, nil
}

// sameForm is how long after an issue was opened a label may come with the form in which it was written.
const sameForm = time.Minute

// asksTheSame reports whether a task that has not ended already does the work that a label or an assignment requests:
// it works on the issue as a whole, or the same person requested it in the text of the issue that they labelled.
func (h remarkEvent) asksTheSame(t tasks.Task) bool {
	o, err := subject.Of(t)
	switch {
	case err != nil || o.Issue == 0 || o.Asked == nil || o.Asked.Place != thread.InIssue:
		return false
	case o.Action != subject.ActionAsked:
		return true
	}
	return strings.EqualFold(t.Actor, h.Author) && h.At.Before(o.Asked.At.Add(sameForm))
}

// noteStart records when work on an issue as a whole was requested, so that no poll starts it again. anew drops the
// plan.
func (i *interpreter) noteStart(ctx context.Context, h remarkEvent, anew bool) error {
	return i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		if h.At.After(p.Started) {
			if p.Started = h.At; anew {
				p.Plans = p.Plans.With(subject.PlanRequest{Task: h.task(), Work: true})
			}
		}
		return nil
	})
}

// ignoreUnrelated ignores labels other than errand's, and assignments to others.
func (i *interpreter) ignoreUnrelated(ctx context.Context, h remarkEvent) error {
	if subject.IsLabel(h.Label, i.gate.ForkLabel) {
		return nil
	}
	if h.Assignee != "" {
		me, err := i.api.Forge.Login(ctx)
		if err != nil || strings.EqualFold(h.Assignee, me) {
			return err
		}
	}
	return subject.IgnoreQuietly("It is not for errand.")
}

// requestedIssueTask is requestedTask for a remark on an issue. Title and description are those of the event, because
// the requester has not seen later edits.
func (i *interpreter) requestedIssueTask(ctx context.Context, h remarkEvent, w work) (subject.Draft, error) {
	o := subject.Origin{Ref: h.Ref, Base: i.base(h.Repo), Action: subject.ActionAsked, Asked: h.request()}
	issue := h.Issue
	if issue == nil {
		var err error
		if _, issue, err = currentIssue(ctx, i.api, h.Ref, 0); err != nil {
			return subject.Draft{}, err
		}
	}
	o.Issue, o.URL = issue.GetID(), issue.GetHTMLURL()
	body := issue.GetBody()
	if h.Place == thread.InIssue && h.said.rest != "" {
		body = "" // the prompt contains it
	}
	o.Title, o.Body = subject.ClipTexts(issue.GetTitle(), body)
	return i.settings.ApplyTo(ctx, subject.Draft{Task: tasks.Task{
		ID: h.task(), Source: sourceName, Kind: w.kind, Thread: h.thread(), Class: tasks.Interactive,
		Profile: w.profile, Repo: h.Repo, Actor: h.Author, Prompt: promptOf(o, w),
		Options: tasks.Options{Plan: w.plan},
	}, About: o})
}

// issueEnds are the reasons why work on an issue ends, by action.
var issueEnds = map[string]string{
	actionClosed:  "The issue was closed.",
	actionDeleted: "The issue was deleted.",
	"transferred": "The issue was transferred to another repository.",
	"locked":      "The conversation of the issue was locked.",
}

// endIssue ends the tasks that were requested on an issue before it was closed, deleted, transferred or locked. A
// comment that closes it has the same time as the closing, and its request counts.
func (i *interpreter) endIssue(ctx context.Context, d delivery) (response string, err error) {
	h := d.remark
	if err := i.worksOn(h.Repo); err != nil {
		return "", err
	}
	why := issueEnds[d.action]
	err = i.desk.Supersede(ctx, h.thread(), why, func(t tasks.Task) bool {
		o, err := subject.Of(t)
		if err != nil || o.Issue != h.Issue.GetID() {
			return false
		}
		return d.action != actionClosed || o.ClosedSince(h.Issue)
	})
	if err != nil {
		return "", err
	}
	return "Stopped the work on " + h.String() + ". " + why, nil
}
