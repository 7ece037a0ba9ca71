package github

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// remark is something a person or bot wrote on a pull request or an issue.
type remark struct {
	spot
	author      string // login
	association string // of the author with the repository: GitHub's author_association
	bot         bool
	body        string
	at, edited  time.Time
	url         string
	node        string // GraphQL ID of an issue or a comment on one

	// Of a comment on a line of the diff.
	review int64 // the review that it belongs to; also of a review
	path   string
	line   int    // 0 if the diff no longer contains the line
	hunk   string // the part of the diff above the line
}

// remarkEvent is a new remark, or an event of an issue such as a label.
type remarkEvent struct {
	remark
	repo         string
	number       int
	installation int64
	pull         *github.PullRequest // nil if the event does not contain it
	issue        *github.Issue       // set if pull is nil, unless a poll found the remark
	onIssue      bool                // the issue is not a pull request
	label        string              // label that the issue was given
	assignee     string              // account that the issue was assigned to
	verdict      string              // GitHub's state of a review, such as approved
	by           string              // sender of the event, who may not be the author of the remark
	again        bool                // it was counted against the rate limit
}

func fromIssueComment(c *github.IssueComment) remark {
	u := c.GetUser()
	return remark{
		spot: spot{Place: inConversation, ID: c.GetID()}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		association: c.GetAuthorAssociation(), body: c.GetBody(), at: c.GetCreatedAt().Time,
		edited: c.GetUpdatedAt().Time, url: c.GetHTMLURL(), node: c.GetNodeID(),
	}
}

func fromLine(c *github.PullRequestComment) remark {
	u, thread := c.GetUser(), c.GetInReplyTo()
	if thread == 0 {
		thread = c.GetID()
	}
	return remark{
		spot: spot{Place: onLine, ID: c.GetID(), Thread: thread}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		association: c.GetAuthorAssociation(), body: c.GetBody(), at: c.GetCreatedAt().Time,
		edited: c.GetUpdatedAt().Time, url: c.GetHTMLURL(),
		review: c.GetPullRequestReviewID(), path: c.GetPath(), line: c.GetLine(), hunk: c.GetDiffHunk(),
	}
}

// fromReview leaves edited unset: GitHub does not report whether a review's body was edited.
func fromReview(v *github.PullRequestReview) remark {
	u, at := v.GetUser(), v.GetSubmittedAt().Time
	return remark{
		spot: spot{Place: inReview, ID: v.GetID()}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		association: v.GetAuthorAssociation(), body: v.GetBody(), at: at, edited: at, url: v.GetHTMLURL(),
		review: v.GetID(),
	}
}

// fromIssue returns the text of an issue itself. It leaves edited unset: GitHub does not report when it was edited.
func fromIssue(v *github.Issue) remark {
	u, at := v.GetUser(), v.GetCreatedAt().Time
	return remark{
		spot: spot{Place: inIssue, ID: v.GetID()}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		association: v.GetAuthorAssociation(), body: v.GetBody(), at: at, edited: at, url: v.GetHTMLURL(),
		node: v.GetNodeID(),
	}
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
			h.remark = fromIssueComment(&c)
		case "pull_request_review_comment":
			var c github.PullRequestComment
			err = readPayload(e.Comment, &c)
			h.remark = fromLine(&c)
		case "issues":
			h.remark = fromIssue(e.Issue)
			h.label, h.assignee = e.Label.GetName(), e.Assignee.GetLogin()
		default:
			h.remark = fromReview(e.Review)
		}
	}
	if err != nil {
		return h, err
	}
	h.repo, h.installation, h.pull = e.Repo.GetFullName(), e.Install.GetID(), e.PullRequest
	h.number, h.verdict, h.again = e.PullRequest.GetNumber(), e.Review.GetState(), d.again
	if e.Issue != nil {
		h.number, h.issue, h.onIssue = e.Issue.GetNumber(), e.Issue, !e.Issue.IsPullRequest()
	}
	h.by = cmp.Or(e.Sender.GetLogin(), h.author)
	h.bot = h.bot || e.Sender.GetType() == "Bot"
	return h, nil
}

// validate refuses remarks without a place or an author. GitHub also sends events of issues for pull requests.
func (h *remarkEvent) validate() error {
	switch {
	case h.repo == "" || h.number == 0 || h.ID == 0 || h.at.IsZero(), h.onIssue && h.issue.GetID() == 0:
		return fmt.Errorf("%w: it contains no remark on a pull request or an issue", intake.ErrUnreadable)
	case h.Place == inIssue && !h.onIssue:
		return ignored{why: "It is a pull request.", level: slog.LevelDebug}
	case h.author == "" && h.Place != inIssue: // its author may have deleted their account
		return fmt.Errorf("%w: the remark has no author", intake.ErrUnreadable)
	}
	return nil
}

// origin returns an origin with only the fields that identify the pull request or issue.
func (h remarkEvent) origin() origin {
	return origin{Repo: h.repo, Number: h.number, Installation: h.installation}
}

// sender returns the sender of the event for the audit log.
func (h remarkEvent) sender() tasks.Sender {
	return tasks.Sender{Source: sourceName, Account: cmp.Or(h.by, h.author)}
}

// thread returns the thread of the conversation.
func (h remarkEvent) thread() string { return "github/" + h.origin().String() }

// task returns the ID of the task that a comment becomes.
func (h remarkEvent) task() string { return tasks.NewID(h.at, "github", h.identity()) }

// threads returns both threads of the pull request: the conversation and the analyses.
func (h remarkEvent) threads() []string { return []string{h.thread(), h.thread() + "/review"} }

// place is the kind of place where a remark was made.
type place string

const (
	inConversation place = "conversation"
	onLine         place = "line"   // a line of the diff
	inReview       place = "review" // the body of a review
	inIssue        place = "issue"  // the issue itself
)

// spot identifies one comment.
type spot struct {
	Place place `json:"place"`
	ID    int64 `json:"id"`
	// Thread is the first comment of the thread on a line. GitHub accepts replies only to that one.
	Thread int64 `json:"thread,omitempty"`
}

// identity returns the spot as a part of a task's ID. A comment gives the same task for all deliveries and events.
func (p spot) identity() string {
	switch p.Place {
	case onLine:
		return fmt.Sprintf("l%d.%d", p.Thread, p.ID)
	case inReview:
		return fmt.Sprintf("r%d", p.ID)
	case inIssue:
		return fmt.Sprintf("i%d", p.ID)
	}
	return fmt.Sprintf("c%d", p.ID)
}

var identityForm = regexp.MustCompile(`-github-(?:([cri])|(l)([0-9]+)\.)([0-9]+)$`)

// placeOfLetter maps the first letter of an identity to its place.
var placeOfLetter = map[string]place{
	"c": inConversation, "l": onLine, "r": inReview, "i": inIssue,
}

// spotOf returns the comment that requested a task, by the task's ID, or false if it was not requested by a comment.
func spotOf(task string) (p spot, ok bool) {
	m := identityForm.FindStringSubmatch(task)
	if m == nil {
		return spot{}, false
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	return spot{Place: placeOfLetter[m[1]+m[2]], Thread: number(m[3]), ID: number(m[4])}, true
}

// sameThread reports whether readers of one spot also see the other.
func (p spot) sameThread(o spot) bool {
	return p.Thread == o.Thread
}

// The reactions to a comment: when errand accepts it, and when its request succeeded or failed.
const (
	eyes    = "eyes"
	done    = "hooray"
	notDone = "confused"
)
