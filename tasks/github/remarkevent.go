package github

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// remarkEvent is a new remark, or an event of an issue such as a label.
type remarkEvent struct {
	thread.Remark
	thread.Ref
	said     said                // what it says, once it is read
	pull     *github.PullRequest // nil if the event does not contain it
	issue    *github.Issue       // set if pull is nil, unless a poll found the remark
	onIssue  bool                // the issue is not a pull request
	label    string              // label that the issue was given
	assignee string              // account that the issue was assigned to
	by       string              // sender of the event, who may not be the author of the remark
	again    bool                // it was counted against the rate limit
}

// readRemarkEvent decodes a delivery about a remark or an issue.
func readRemarkEvent(d delivery) (_ *remarkEvent, err error) {
	h := new(remarkEvent)
	var e struct { // the fields of the events
		Issue       *github.Issue             `json:"issue"`
		PullRequest *github.PullRequest       `json:"pull_request"`
		Review      *github.PullRequestReview `json:"review"`
		Comment     json.RawMessage           `json:"comment"`
		Repo        *github.Repository        `json:"repository"`
		Label       *github.Label             `json:"label"`
		Assignee    *github.User              `json:"assignee"`
		Sender      *github.User              `json:"sender"`
		Install     *github.Installation      `json:"installation"`
	}
	if err = readPayload(d.payload, &e); err == nil {
		switch d.event {
		case "issue_comment":
			var c github.IssueComment
			err = readPayload(e.Comment, &c)
			h.Remark = thread.FromComment(&c)
		case "pull_request_review_comment":
			var c github.PullRequestComment
			err = readPayload(e.Comment, &c)
			h.Remark = thread.FromLine(&c)
		case "issues":
			h.Remark = thread.FromIssue(e.Issue)
			h.label, h.assignee = e.Label.GetName(), e.Assignee.GetLogin()
		default:
			h.Remark = thread.FromReview(e.Review)
		}
	}
	if err != nil {
		return h, err
	}
	h.Repo, h.Installation, h.pull = e.Repo.GetFullName(), e.Install.GetID(), e.PullRequest
	h.Number, h.again = e.PullRequest.GetNumber(), d.again
	if e.Issue != nil {
		h.Number, h.issue, h.onIssue = e.Issue.GetNumber(), e.Issue, !e.Issue.IsPullRequest()
	}
	h.by = cmp.Or(e.Sender.GetLogin(), h.Author)
	h.Bot = h.Bot || e.Sender.GetType() == "Bot"
	return h, nil
}

// validate refuses remarks without a place or an author. GitHub also sends events of issues for pull requests.
func (h *remarkEvent) validate() error {
	switch {
	case h.Repo == "" || h.Number == 0 || h.ID == 0 || h.At.IsZero(), h.onIssue && h.issue.GetID() == 0:
		return fmt.Errorf("%w: it contains no remark on a pull request or an issue", intake.ErrUnreadable)
	case h.Place == thread.InIssue && !h.onIssue:
		return ignored{why: "It is a pull request.", level: slog.LevelDebug}
	case h.Author == "" && h.Place != thread.InIssue: // its author may have deleted their account
		return fmt.Errorf("%w: the remark has no author", intake.ErrUnreadable)
	}
	return nil
}

// sender returns the sender of the event for the audit log.
func (h remarkEvent) sender() tasks.Sender {
	return tasks.Sender{Source: sourceName, Account: cmp.Or(h.by, h.Author)}
}

// thread returns the thread of the conversation.
func (h remarkEvent) thread() string { return "github/" + h.String() }

// task returns the ID of the task that a comment becomes.
func (h remarkEvent) task() string { return tasks.NewID(h.At, "github", h.Identity()) }

// threads returns both threads of the pull request: the conversation and the analyses.
func (h remarkEvent) threads() []string { return []string{h.thread(), h.thread() + "/review"} }

// The reactions to a comment: when errand accepts it, and when its request succeeded or failed.
const (
	eyes    = "eyes"
	done    = "hooray"
	notDone = "confused"
)
