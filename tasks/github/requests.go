package github

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/policy"
)

// request returns the request of a remark.
func (h remarkEvent) request() *subject.Request {
	return &subject.Request{Spot: h.Spot, At: h.At, URL: h.URL, Command: h.said.word, Words: h.said.rest, Bot: h.Bot}
}

// submitRequest submits the task that a comment requests, by a command or a mention.
func (i *interpreter) submitRequest(ctx context.Context, h remarkEvent) (response string, err error) {
	w, err := i.workOf(ctx, h)
	if err != nil {
		return "", err
	}
	t, err := i.requestedTask(ctx, h, w)
	if err != nil {
		return "", err
	}
	receipt, err := t.Submit(ctx, i.desk)
	if err != nil {
		return "", err
	}
	if err := i.notePlan(ctx, h); err != nil {
		return "", err
	}
	over := i.ignoreOvertaken(ctx, h) // again: a deletion or a stop may have found no task a moment ago
	if _, ok := errors.AsType[subject.Ignored](over); ok {
		if _, err := i.withdrawTask(ctx, h); err != nil {
			return "", err
		}
	}
	if over != nil {
		return "", over
	}
	if receipt.New {
		i.react(ctx, h, eyes)
	}
	return "Task " + receipt.ID, nil
}

// requestedTask returns the task for submitRequest.
func (i *interpreter) requestedTask(ctx context.Context, h remarkEvent, w work) (subject.Draft, error) {
	if h.OnIssue {
		return i.requestedIssueTask(ctx, h, w)
	}
	pr, err := i.pull(ctx, h)
	if err != nil {
		return subject.Draft{}, err
	}
	o := subject.OfPull(h.Repo, pr)
	if h.Issue != nil { // the state at that time: the event may be late, and the pull request was read just now
		o.Title, o.Body = subject.ClipTexts(h.Issue.GetTitle(), h.Issue.GetBody())
	}
	o.Installation, o.Action, o.Full = h.Installation, subject.ActionAsked, w.full
	o.Asked = h.request()
	t := subject.Draft{Pull: pr, Task: tasks.Task{
		ID: h.task(), Source: sourceName, Kind: w.kind, Thread: h.thread(), Class: tasks.Interactive,
		Profile: subject.ProfileOf(pr, w.profile), Repo: h.Repo, Ref: fmt.Sprintf("refs/pull/%d/head", h.Number),
		Actor: h.Author,
	}}
	if w.ownThread {
		t.Thread = h.thread() + "/review"
	}
	if w.ownThread || hub.IsFork(pr) { // of a fork, only the approved head
		t.Ref = o.Head
	}
	if hub.IsFork(pr) {
		writes := w.profile == agent.Write && h.said.word != "" // a mention is answered without writing
		v := policy.Decide(i.gate.Account(h.Author, h.Bot), policy.Fork,
			policy.Object{Writes: writes, Moved: subject.MovedSince(pr, h.At), Approved: true}, policy.Posture{})
		if !v.Allowed && h.Bot {
			return subject.Draft{}, subject.Ignore(v.Reason)
		}
		if !v.Allowed {
			return subject.Draft{}, thread.Refuse(v.Reason)
		}
	}
	if w.kind == "review" {
		o.ApprovedBy = h.Author
	}
	t.Prompt, t.About = promptOf(o, w), o
	return i.settings.ApplyTo(ctx, t)
}

// promptOf returns the request of a comment.
func promptOf(o subject.Origin, w work) string {
	switch a := o.Asked; {
	case a.Command != "" && w.kind != mentionWork.kind:
		return strings.TrimSpace(fmt.Sprintf("%s %s #%d of %s: %s\n\n%s",
			a.Command, o.Kind(), o.Number, o.Repo, o.Title, a.Words))
	case a.Words == "":
		return wordless[a.Place]
	default:
		return a.Words
	}
}

// wordless is the request of a comment that only mentions errand.
var wordless = map[thread.Place]string{
	thread.InConversation: "Read the conversation and answer it.",
	thread.OnLine:         "Read this thread and answer it.",
	thread.InReview:       "Do what this review asks for.",
	thread.InIssue:        "Read this issue and do what it asks for.",
}

// pull returns the pull request of a comment. It reads it from GitHub if the event does not contain it.
func (i *interpreter) pull(ctx context.Context, h remarkEvent) (*github.PullRequest, error) {
	if h.Pull != nil {
		return h.Pull, nil
	}
	_, pr, err := i.api.ReachPull(ctx, h.Ref)
	return pr, err
}
