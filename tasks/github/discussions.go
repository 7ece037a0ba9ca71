package github

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
)

// A discussion is a conversation like that of an issue, in which errand only answers questions. GitHub numbers
// discussions together with issues and pull requests, so threads and memos have the same names. Only GraphQL can read
// them and write to them.

// fromDiscussion returns the text of a discussion itself.
func fromDiscussion(v *github.Discussion) remark {
	u, at := v.GetUser(), v.GetCreatedAt().Time
	return remark{
		spot: spot{Place: inDiscussion, ID: v.GetID()}, node: v.GetNodeID(), author: u.GetLogin(),
		bot: u.GetType() == "Bot", association: v.GetAuthorAssociation(), body: v.GetBody(), at: at,
		edited: v.GetUpdatedAt().Time, url: v.GetHTMLURL(),
	}
}

func fromDiscussionComment(c *github.CommentDiscussion) remark {
	u, thread := c.GetUser(), c.GetParentID()
	if thread == 0 {
		thread = c.GetID()
	}
	return remark{
		spot: spot{Place: inReplies, ID: c.GetID(), Thread: thread}, node: c.GetNodeID(), author: u.GetLogin(),
		bot: u.GetType() == "Bot", association: c.GetAuthorAssociation(), body: c.GetBody(), at: c.GetCreatedAt().Time,
		edited: c.GetUpdatedAt().Time, url: c.GetHTMLURL(),
	}
}

// ended returns the reason why work on an issue or a discussion ends.
func (o origin) ended(action string) string {
	if o.Discussion == 0 {
		return issueEnds[action]
	}
	return strings.Replace(issueEnds[action], "issue", o.kind(), 1)
}

// discussionQuery reads a discussion with a page of its comments, and the newest replies to each.
const discussionQuery = `query($owner: String!, $name: String!, $number: Int!, $before: String) {
  repository(owner: $owner, name: $name) {
    discussion(number: $number) {
      databaseId locked closedAt author { __typename login } category { name }
      comments(last: 100, before: $before) {
        pageInfo { hasPreviousPage startCursor }
        nodes {
          id databaseId url body createdAt lastEditedAt authorAssociation author { __typename login }
          replies(last: 100) {
            nodes { id databaseId url body createdAt lastEditedAt authorAssociation author { __typename login } }
          }
        }
      }
    }
  }
}`

// maxDiscussionPages bounds the comments of a discussion that are read: the newest thousand.
const maxDiscussionPages = 10

// discussion is a discussion as it is now.
type discussion struct {
	ID       int64     `json:"databaseId"`
	Locked   bool      `json:"locked"`
	ClosedAt time.Time `json:"closedAt"`
	Author   actor     `json:"author"`
	Category struct {
		Name string `json:"name"`
	} `json:"category"`
	Comments struct {
		Nodes    []graphComment `json:"nodes"`
		PageInfo struct {
			More  bool   `json:"hasPreviousPage"`
			Start string `json:"startCursor"`
		} `json:"pageInfo"`
	} `json:"comments"`

	remarks []remark // the comments and the replies
}

// graphComment is a comment in a discussion or on a line, or a reply, as GraphQL returns it.
type graphComment struct {
	Node        string    `json:"id"`
	ID          int64     `json:"databaseId"`
	URL         string    `json:"url"`
	Body        string    `json:"body"`
	Created     time.Time `json:"createdAt"`
	Edited      time.Time `json:"lastEditedAt"` // zero: never
	Association string    `json:"authorAssociation"`
	Author      actor     `json:"author"`
	Replies     struct {
		Nodes []graphComment `json:"nodes"`
	} `json:"replies"`
}

func (c graphComment) remark(thread int64) remark {
	r := remark{
		spot: spot{Place: inReplies, ID: c.ID, Thread: thread}, node: c.Node, author: c.Author.login(),
		bot: c.Author.Kind == "Bot", association: c.Association, body: c.Body, at: c.Created, edited: c.Edited,
		url: c.URL,
	}
	if c.Edited.IsZero() {
		r.edited = c.Created
	}
	return r
}

// readDiscussion reads the discussion of a task. If the number now leads to another one, that counts as not found.
func readDiscussion(ctx context.Context, gh *github.Client, o origin) (*discussion, error) {
	owner, name := o.path()
	vars := map[string]any{"owner": owner, "name": name, "number": o.Number}
	var all []remark
	for page := 1; ; page++ {
		var answer struct {
			Repository struct {
				Discussion discussion `json:"discussion"`
			} `json:"repository"`
		}
		if err := hub.GraphQL(ctx, gh, discussionQuery, vars, &answer); err != nil {
			return nil, fmt.Errorf("read discussion %s: %w", o, err)
		}
		d := &answer.Repository.Discussion
		if d.ID != o.Discussion {
			gone := &http.Response{StatusCode: http.StatusNotFound, Request: &http.Request{}}
			err := &github.ErrorResponse{Response: gone, Message: "it was transferred"}
			return nil, fmt.Errorf("read discussion %s: %w", o, err)
		}
		for _, c := range d.Comments.Nodes {
			all = append(all, c.remark(c.ID))
			for _, r := range c.Replies.Nodes {
				all = append(all, r.remark(c.ID))
			}
		}
		if d.remarks = all; !d.Comments.PageInfo.More || page == maxDiscussionPages {
			return d, nil
		}
		vars["before"] = d.Comments.PageInfo.Start
	}
}

// node returns the ID for GraphQL of a comment, or "" if there is no such comment.
func (d *discussion) node(comment int64) string {
	for _, r := range d.remarks {
		if r.ID == comment {
			return r.node
		}
	}
	return ""
}

// discussionRemarks iterates over the comments in a discussion, by thread and in no order of time.
func discussionRemarks(ctx context.Context, gh *github.Client, o origin) remarks {
	return func(yield func(remark, error) bool) {
		d, err := readDiscussion(ctx, gh, o)
		if err != nil {
			d = &discussion{remarks: make([]remark, 1)}
		}
		for _, r := range d.remarks {
			if !yield(r, err) {
				return
			}
		}
	}
}

// The mutations of discussions, and of reactions anywhere.
const (
	addToDiscussion = `mutation($discussion: ID!, $to: ID, $body: String!) {
  addDiscussionComment(input: {discussionId: $discussion, replyToId: $to, body: $body}) { comment { id } }
}`
	editInDiscussion = `mutation($target: ID!, $body: String!) {
  updateDiscussionComment(input: {commentId: $target, body: $body}) { comment { id } }
}`
	reactToDiscussion = `mutation($target: ID!, $sign: ReactionContent!) {
  addReaction(input: {subjectId: $target, content: $sign}) { reaction { id } }
}`
	removeReaction = `mutation($target: ID!, $sign: ReactionContent!) {
  removeReaction(input: {subjectId: $target, content: $sign}) { reaction { id } }
}`
)

// discuss posts a comment in a discussion: in the thread with this node, unless that is empty.
func discuss(ctx context.Context, gh *github.Client, o origin, thread, body string) error {
	vars := map[string]any{"discussion": o.Node, "body": body}
	if thread != "" {
		vars["to"] = thread
	}
	var answer struct{}
	return hub.GraphQL(ctx, gh, addToDiscussion, vars, &answer)
}

// reactInDiscussion adds a reaction to a discussion or to a comment in it, unless that was deleted.
func reactInDiscussion(ctx context.Context, gh *github.Client, o origin, p spot, reaction string) error {
	node := o.Node
	switch {
	case p.Place == inDiscussion:
	case o.Asked != nil && o.Asked.spot == p:
		node = o.Asked.Node
	default: // only its ID is known
		d, err := readDiscussion(ctx, gh, o)
		if err != nil {
			return err
		}
		node = d.node(p.ID)
	}
	if node == "" {
		return nil
	}
	vars := map[string]any{"target": node, "sign": strings.ToUpper(reaction)}
	var answer struct{}
	err := hub.GraphQL(ctx, gh, reactToDiscussion, vars, &answer)
	if hub.StatusCode(err) == http.StatusNotFound {
		return nil
	}
	return err
}

// readDiscussion reads the discussion of a task, and refuses the task if the discussion has ended.
func (b *briefer) readDiscussion(ctx context.Context, t tasks.Task, o origin) (conversation, error) {
	gh, err := b.api.client(ctx, o)
	if err != nil {
		return conversation{}, b.api.briefError("reach "+o.String(), err)
	}
	d, err := readDiscussion(ctx, gh, o)
	if hub.StatusCode(err) == http.StatusNotFound {
		return conversation{}, &tasks.InputError{Sentence: "The discussion was deleted or transferred."}
	} else if err != nil {
		return conversation{}, b.api.briefError("read "+o.String(), err)
	}
	k := conversation{b: b, gh: gh, task: t, o: o, discussion: d}
	if k.settings, _, err = b.settings.settings(ctx, gh, o, o.Base); err != nil {
		return conversation{}, err
	}
	why := k.settings.refuses(t.Kind, o, nil, nil)
	switch {
	case why != "":
	case d.Locked:
		why = o.ended("locked")
	case o.Asked.At.Before(d.ClosedAt.Truncate(time.Second)):
		why = o.ended("closed")
	}
	if why != "" {
		return conversation{}, &tasks.InputError{Sentence: why}
	}
	return k, nil
}

// aboutDiscussion quotes the discussion as it was when the task was requested.
func aboutDiscussion(o origin, d *discussion) string {
	author, category := untrusted.Line(d.Author.login(), 100), untrusted.Line(d.Category.Name, 100)
	text := fmt.Sprintf("Title: %s\nAuthor: %s\nCategory: %s\n", o.Title, author, category)
	if o.Body != "" {
		text += "Description:\n" + o.Body
	}
	return untrusted.Quote(o.what(), text)
}
