package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// remark is something that somebody has said on a pull request.
type remark struct {
	spot
	author, standing string // login, and what he is to the repository, in GitHub's words
	bot              bool
	body             string
	at, edited       time.Time
	url              string

	review int64  // of a comment on a line: the review it came with
	path   string // and where it is: the file,
	line   int    // the line, 0 when the diff has it no more,
	hunk   string // and the part of the diff above it
}

// heard is an event in which somebody says something on a pull request.
type heard struct {
	remark
	repo         string
	number       int
	installation int64
	pull         *github.PullRequest // nil where the event does not tell it,
	issue        *github.Issue       // which then tells this of it
	verdict      string              // of a review, in GitHub's words

	after func(do func(context.Context)) // does what nobody waits for
}

func fromIssueComment(c *github.IssueComment) remark {
	u := c.GetUser()
	return remark{
		spot: spot{Place: inConversation, ID: c.GetID()}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		standing: c.GetAuthorAssociation(), body: c.GetBody(), at: c.GetCreatedAt().Time, edited: c.GetUpdatedAt().Time, url: c.GetHTMLURL(),
	}
}

func fromLine(c *github.PullRequestComment) remark {
	u, thread := c.GetUser(), c.GetInReplyTo()
	if thread == 0 {
		thread = c.GetID()
	}
	return remark{
		spot: spot{Place: onLine, ID: c.GetID(), Thread: thread}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		standing: c.GetAuthorAssociation(), body: c.GetBody(), at: c.GetCreatedAt().Time, edited: c.GetUpdatedAt().Time, url: c.GetHTMLURL(),
		review: c.GetPullRequestReviewID(), path: c.GetPath(), line: c.GetLine(), hunk: c.GetDiffHunk(),
	}
}

// fromReview cannot know whether the body was edited: GitHub does not say so of reviews.
func fromReview(v *github.PullRequestReview) remark {
	u, at := v.GetUser(), v.GetSubmittedAt().Time
	return remark{
		spot: spot{Place: inReview, ID: v.GetID()}, author: u.GetLogin(), bot: u.GetType() == "Bot",
		standing: v.GetAuthorAssociation(), body: v.GetBody(), at: at, edited: at, url: v.GetHTMLURL(), review: v.GetID(),
	}
}

// readHeard reads the event of a remark.
func readHeard(d delivery) (_ *heard, action string, err error) {
	h := new(heard)
	var e struct { // what the three events bring
		Action      string                    `json:"action"`
		Issue       *github.Issue             `json:"issue"`
		PullRequest *github.PullRequest       `json:"pull_request"`
		Review      *github.PullRequestReview `json:"review"`
		Comment     json.RawMessage           `json:"comment"`
		Repo        *github.Repository        `json:"repository"`
		Sender      *github.User              `json:"sender"`
		Install     *github.Installation      `json:"installation"`
	}
	if err = json.Unmarshal(d.payload, &e); err == nil {
		switch d.event {
		case "issue_comment":
			var c github.IssueComment
			err = json.Unmarshal(e.Comment, &c)
			h.remark = fromIssueComment(&c)
		case "pull_request_review_comment":
			var c github.PullRequestComment
			err = json.Unmarshal(e.Comment, &c)
			h.remark = fromLine(&c)
		default:
			h.remark = fromReview(e.Review)
		}
	}
	if err != nil {
		return h, e.Action, err
	}
	h.repo, h.installation, h.pull = e.Repo.GetFullName(), e.Install.GetID(), e.PullRequest
	h.number, h.verdict, h.after = e.PullRequest.GetNumber(), e.Review.GetState(), d.after
	if e.Issue != nil {
		h.number, h.issue = e.Issue.GetNumber(), e.Issue
	}
	h.bot = h.bot || e.Sender.GetType() == "Bot"
	return h, e.Action, nil
}

// validate refuses what was not said on a pull request.
func (h *heard) validate() error {
	switch {
	case h.issue != nil && !h.issue.IsPullRequest():
		return ignored{why: "It is no pull request.", level: slog.LevelDebug}
	case h.repo == "" || h.number == 0 || h.ID == 0 || h.author == "" || h.at.IsZero():
		return unreadable{errors.New("read payload: no remark on a pull request in it")}
	}
	return nil
}

// origin is where it was said; of the pull request it tells no more than its number.
func (h heard) origin() origin {
	return origin{Repo: h.repo, Number: h.number, Installation: h.installation}
}

// thread is the conversation of the pull request.
func (h heard) thread() string { return "github/" + h.origin().String() }

// task is the ID of the task that a comment becomes.
func (h heard) task() string { return tasks.NewID(h.at, "github", h.identity()) }

// threads are those of the pull request: its conversation, and what is analysed apart.
func (h heard) threads() []string { return []string{h.thread(), h.thread() + "/review"} }

// place is where on a pull request people say something.
type place string

const (
	inConversation place = "conversation"
	onLine         place = "line"   // of the diff
	inReview       place = "review" // its body
)

// spot is one comment.
type spot struct {
	Place  place `json:"place"`
	ID     int64 `json:"id"`
	Thread int64 `json:"thread,omitempty"` // on a line: the comment that began the thread, to which alone GitHub takes replies
}

// identity is the spot as a part of a task's ID. A comment is the same task however often, and in how many forms, GitHub tells of it.
func (p spot) identity() string {
	switch p.Place {
	case onLine:
		return fmt.Sprintf("l%d.%d", p.Thread, p.ID)
	case inReview:
		return fmt.Sprintf("r%d", p.ID)
	}
	return fmt.Sprintf("c%d", p.ID)
}

var identityForm = regexp.MustCompile(`-github-(?:c([0-9]+)|l([0-9]+)\.([0-9]+)|r([0-9]+))$`)

// spotOf is the comment that asked for a task, by the task's ID; false where no comment did.
func spotOf(task string) (p spot, ok bool) {
	m := identityForm.FindStringSubmatch(task)
	if m == nil {
		return spot{}, false
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	switch {
	case m[1] != "":
		return spot{Place: inConversation, ID: number(m[1])}, true
	case m[4] != "":
		return spot{Place: inReview, ID: number(m[4])}, true
	}
	return spot{Place: onLine, Thread: number(m[2]), ID: number(m[3])}, true
}

// beside reports whether what is said at one spot is read at the other.
func (p spot) beside(o spot) bool {
	return p.Place == onLine == (o.Place == onLine) && p.Thread == o.Thread
}

// The signs that a comment gets: when it is taken, and when what it asked for has been done, or has not.
const (
	eyes    = "eyes"
	done    = "hooray"
	notDone = "confused"
)

// react puts a sign on a comment. The same one again changes nothing. The body of a review takes none from a REST client.
func react(ctx context.Context, gh *github.Client, o origin, p spot, sign string) (err error) {
	owner, name := o.path()
	switch p.Place {
	case inConversation:
		_, _, err = gh.Reactions.CreateIssueCommentReaction(ctx, owner, name, p.ID, sign)
	case onLine:
		_, _, err = gh.Reactions.CreatePullRequestCommentReaction(ctx, owner, name, p.ID, sign)
	}
	if err != nil {
		return fmt.Errorf("react to comment %d of %s: %w", p.ID, o, err)
	}
	return nil
}
