package thread

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
)

// Remark is something a person or bot wrote on a pull request or an issue.
type Remark struct {
	Spot
	Author      string // login
	Association string // of the author with the repository: GitHub's author_association
	Bot         bool
	Body        string
	At, Edited  time.Time
	URL         string
	Node        string // GraphQL ID of an issue or a comment on one
	Verdict     string // GitHub's state of a review, such as approved

	// Of a comment on a line of the diff.
	Review int64 // the review that it belongs to; also of a review
	Path   string
	Line   int    // 0 if the diff no longer contains the line
	Hunk   string // the part of the diff above the line
}

// FromComment returns a comment in a conversation.
func FromComment(c *github.IssueComment) Remark {
	u := c.GetUser()
	return Remark{
		Spot: Spot{Place: InConversation, ID: c.GetID()}, Author: u.GetLogin(), Bot: u.GetType() == "Bot",
		Association: c.GetAuthorAssociation(), Body: c.GetBody(), At: c.GetCreatedAt().Time,
		Edited: c.GetUpdatedAt().Time, URL: c.GetHTMLURL(), Node: c.GetNodeID(),
	}
}

// FromLine returns a comment on a line.
func FromLine(c *github.PullRequestComment) Remark {
	u, first := c.GetUser(), c.GetInReplyTo()
	if first == 0 {
		first = c.GetID()
	}
	return Remark{
		Spot: Spot{Place: OnLine, ID: c.GetID(), Thread: first}, Author: u.GetLogin(), Bot: u.GetType() == "Bot",
		Association: c.GetAuthorAssociation(), Body: c.GetBody(), At: c.GetCreatedAt().Time,
		Edited: c.GetUpdatedAt().Time, URL: c.GetHTMLURL(),
		Review: c.GetPullRequestReviewID(), Path: c.GetPath(), Line: c.GetLine(), Hunk: c.GetDiffHunk(),
	}
}

// FromReview returns the body of a review. GitHub does not report whether it was edited.
func FromReview(v *github.PullRequestReview) Remark {
	u, at := v.GetUser(), v.GetSubmittedAt().Time
	return Remark{
		Spot: Spot{Place: InReview, ID: v.GetID()}, Author: u.GetLogin(), Bot: u.GetType() == "Bot",
		Association: v.GetAuthorAssociation(), Body: v.GetBody(), At: at, Edited: at, URL: v.GetHTMLURL(),
		Review: v.GetID(), Verdict: v.GetState(),
	}
}

// FromIssue returns the text of an issue itself. GitHub does not report when it was edited.
func FromIssue(v *github.Issue) Remark {
	u, at := v.GetUser(), v.GetCreatedAt().Time
	return Remark{
		Spot: Spot{Place: InIssue, ID: v.GetID()}, Author: u.GetLogin(), Bot: u.GetType() == "Bot",
		Association: v.GetAuthorAssociation(), Body: v.GetBody(), At: at, Edited: at, URL: v.GetHTMLURL(),
		Node: v.GetNodeID(),
	}
}

// Remarks iterates over remarks of one kind, oldest first. An error ends the iteration.
type Remarks = iter.Seq2[Remark, error]

// Comments iterates over the comments of a conversation, or of all conversations of a repository, that were written or
// edited since then. It may include some from earlier in the same second.
func (t Thread) Comments(ctx context.Context, since time.Time) Remarks {
	opt := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	if !since.IsZero() {
		opt.Since = &since
	}
	return hub.Pages(&opt.ListOptions, FromComment, func() ([]*github.IssueComment, *github.Response, error) {
		return t.GH.Issues.ListComments(ctx, t.Owner, t.Name, t.Number, opt)
	})
}

// LineComments iterates over the comments on lines of a pull request, or of all of a repository, that were written or
// edited since then.
func (t Thread) LineComments(ctx context.Context, since time.Time) Remarks {
	opt := &github.PullRequestListCommentsOptions{Since: since, ListOptions: github.ListOptions{PerPage: 100}}
	return hub.Pages(&opt.ListOptions, FromLine, func() ([]*github.PullRequestComment, *github.Response, error) {
		return t.GH.PullRequests.ListComments(ctx, t.Owner, t.Name, t.Number, opt)
	})
}

// Reviews iterates over the bodies of all reviews.
func (t Thread) Reviews(ctx context.Context) Remarks {
	opt := &github.ListOptions{PerPage: 100}
	return hub.Pages(opt, FromReview, func() ([]*github.PullRequestReview, *github.Response, error) {
		return t.GH.PullRequests.ListReviews(ctx, t.Owner, t.Name, t.Number, opt)
	})
}

// Own iterates over those remarks that are errand's. Others may copy the marks by which errand finds its own.
func (t Thread) Own(ctx context.Context, list Remarks) Remarks {
	return func(yield func(Remark, error) bool) {
		me, err := t.Forge.Login(ctx)
		if err != nil {
			yield(Remark{}, err)
			return
		}
		for r, err := range list {
			r.Body = strings.ReplaceAll(r.Body, "\r\n", "\n") // as GitHub's page writes what people edit there
			if (err != nil || r.Author == me) && !yield(r, err) {
				return
			}
		}
	}
}

// Find returns the first remark of errand that begins with a mark; ok is false if there is none.
func (t Thread) Find(ctx context.Context, list Remarks, mark string) (r Remark, ok bool, err error) {
	for r, err := range t.Own(ctx, list) {
		if err != nil {
			return Remark{}, false, err
		}
		if strings.HasPrefix(r.Body, mark) {
			return r, true, nil
		}
	}
	return Remark{}, false, nil
}

// Place is the kind of place where a remark was made.
type Place string

// The places.
const (
	InConversation Place = "conversation"
	OnLine         Place = "line"   // a line of the diff
	InReview       Place = "review" // the body of a review
	InIssue        Place = "issue"  // the issue itself
)

// Spot identifies one remark. The zero value is the end of the conversation, for what is posted.
type Spot struct {
	Place Place `json:"place"`
	ID    int64 `json:"id"`
	// Thread is the first comment of the thread on a line. GitHub accepts replies only to that one.
	Thread int64 `json:"thread,omitempty"`
}

// Identity returns the spot as a part of a task's ID. A comment gives the same task for all deliveries and events.
func (p Spot) Identity() string {
	switch p.Place {
	case OnLine:
		return fmt.Sprintf("l%d.%d", p.Thread, p.ID)
	case InReview:
		return fmt.Sprintf("r%d", p.ID)
	case InIssue:
		return fmt.Sprintf("i%d", p.ID)
	}
	return fmt.Sprintf("c%d", p.ID)
}

var identityForm = regexp.MustCompile(`-github-(?:([cri])|(l)([0-9]+)\.)([0-9]+)$`)

// placeOfLetter maps the first letter of an identity to its place.
var placeOfLetter = map[string]Place{
	"c": InConversation, "l": OnLine, "r": InReview, "i": InIssue,
}

// SpotOf returns the comment that requested a task, by the task's ID, or false if it was not requested by a comment.
func SpotOf(task string) (p Spot, ok bool) {
	m := identityForm.FindStringSubmatch(task)
	if m == nil {
		return Spot{}, false
	}
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	return Spot{Place: placeOfLetter[m[1]+m[2]], Thread: number(m[3]), ID: number(m[4])}, true
}

// AskedAt returns when a task was requested, from its ID.
func AskedAt(task string) time.Time {
	digits, _, _ := strings.Cut(task, "-")
	micros, _ := strconv.ParseInt(digits, 10, 64)
	return time.UnixMicro(micros).UTC()
}
