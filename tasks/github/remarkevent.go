package github

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// remarkEvent is a new remark, or an event of an issue such as a label. The inbox keeps its exported fields for polls.
type remarkEvent struct {
	thread.Remark
	thread.Ref
	said     said                // what it says, once it is read
	Pull     *github.PullRequest // nil if the event does not contain it
	Issue    *github.Issue       // set if Pull is nil, unless a poll found the remark
	OnIssue  bool                // the issue is not a pull request
	Label    string              // label that the issue was given
	Assignee string              // account that the issue was assigned to
	by       string              // sender of the event, who may not be the author of the remark
	before   string              // the text before an edit
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
		Changes     *github.EditChange        `json:"changes"`
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
			h.Label, h.Assignee = e.Label.GetName(), e.Assignee.GetLogin()
		default:
			h.Remark = thread.FromReview(e.Review)
		}
	}
	if err != nil {
		return h, err
	}
	h.Repo, h.Installation, h.Pull = e.Repo.GetFullName(), e.Install.GetID(), e.PullRequest
	h.Number, h.again = e.PullRequest.GetNumber(), d.again
	if e.Issue != nil {
		h.Number, h.Issue, h.OnIssue = e.Issue.GetNumber(), e.Issue, !e.Issue.IsPullRequest()
	}
	h.before = h.Body // the edit of a title only
	if c := e.Changes.GetBody(); c != nil {
		h.before = c.GetFrom()
	}
	h.by = cmp.Or(e.Sender.GetLogin(), h.Author)
	h.Bot = h.Bot || e.Sender.GetType() == "Bot"
	return h, nil
}

// validate refuses remarks without a place or an author. GitHub also sends events of issues for pull requests.
func (h *remarkEvent) validate() error {
	switch {
	case h.Repo == "" || h.Number == 0 || h.ID == 0 || h.At.IsZero(), h.Issue != nil && h.Issue.GetID() == 0:
		return fmt.Errorf("%w: it contains no remark on a pull request or an issue", intake.ErrUnreadable)
	case h.Place == thread.InIssue && !h.OnIssue:
		return subject.IgnoreQuietly("It is a pull request.")
	case h.Author == "" && h.Place != thread.InIssue: // its author may have deleted their account
		return fmt.Errorf("%w: the remark has no author", intake.ErrUnreadable)
	}
	return nil
}

// sender returns the sender of the event for the audit log.
func (h remarkEvent) sender() desk.Sender {
	return desk.Sender{Source: sourceName, Account: cmp.Or(h.by, h.Author)}
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
