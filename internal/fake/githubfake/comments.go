package githubfake

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	maxComment  = 65_536 // characters
	bodyTooLong = "Body is too long (maximum is 65536 characters)"
)

// Comment is a comment in the conversation of an issue or a pull request.
type Comment struct {
	ID                   int64
	User, Body           string
	CreatedAt, UpdatedAt time.Time
	Edits                int
	Reactions            []Reaction

	on     *issue
	byApp  bool
	before string // Body, before the last edit
}

// Comments returns the comments of an issue or a pull request as they are now, oldest
// first. Deleted ones are gone.
func (s *Server) Comments(repo string, number int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustIssue(repo, number)
	if err != nil {
		return nil
	}
	var out []Comment
	for _, c := range p.comments {
		v := *c
		v.Reactions = slices.Clone(c.Reactions)
		out = append(out, v)
	}
	return out
}

// Comment writes a comment as a person would and delivers it. The id is valid
// even when the delivery was not answered with success.
func (s *Server) Comment(ctx context.Context, repo string, number int, user, body string) (id int64, err error) {
	s.mu.Lock()
	p, err := s.mustIssue(repo, number)
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("comment: %w", err)
	}
	c := s.addComment(p, user, body)
	e := s.commentEvent("created", c, user)
	s.changed()
	s.mu.Unlock()
	return c.ID, s.deliver(ctx, e)
}

func (s *Server) addComment(p *issue, user, body string) *Comment {
	now := s.now()
	c := &Comment{ID: s.id(), User: user, Body: body, CreatedAt: now, UpdatedAt: now, on: p}
	p.comments = append(p.comments, c)
	p.updated = now
	return c
}

func (s *Server) commentRoutes() {
	const one = "/repos/{o}/{r}/issues/comments/{id}"
	const all = "/repos/{o}/{r}/issues/{n}/comments"
	const read, write = "issues,pull_requests:read", "issues,pull_requests:write"
	s.api("GET "+all, read, s.listComments)
	s.api("GET /repos/{o}/{r}/issues/comments", read, func(r *request) reply {
		var some []*Comment
		for _, p := range r.repo.conversations() {
			some = append(some, p.comments...)
		}
		since := sinceOf(r)
		return listing(s, r, slices.DeleteFunc(some,
			func(c *Comment) bool { return c.UpdatedAt.Before(since) }), s.comment)
	})
	s.api("POST "+all, write, s.createComment)
	s.api("PATCH "+one, write, s.onComment(s.editComment))
	s.api("DELETE "+one, write, s.onComment(func(r *request, c *Comment) reply {
		// The payload still counts the comment, so it is made first.
		e := s.commentEvent("deleted", c, r.who.login)
		c.on.comments = slices.DeleteFunc(c.on.comments, func(o *Comment) bool { return o == c })
		s.echo(e)
		return reply{status: 204}
	}))
	s.api("POST "+one+"/reactions", write, s.onComment(func(r *request, c *Comment) reply {
		return s.react(r, &c.Reactions)
	}))
	s.api("POST /repos/{o}/{r}/issues/{n}/reactions", write, func(r *request) reply {
		return s.react(r, &r.issue.reactions)
	})
}

// onComment finds the comment of {id}.
func (s *Server) onComment(h func(*request, *Comment) reply) func(*request) reply {
	return func(r *request) reply {
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		for _, p := range r.repo.conversations() {
			for _, c := range p.comments {
				if c.ID == id {
					return h(r, c)
				}
			}
		}
		return fail(404, "Not Found")
	}
}

func sinceOf(r *request) time.Time {
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	return since
}

// listComments is always oldest first: on one issue GitHub ignores sort and
// direction. It does know since.
func (s *Server) listComments(r *request) reply {
	since := sinceOf(r)
	var some []*Comment
	for _, c := range r.issue.comments {
		if !c.UpdatedAt.Before(since) {
			some = append(some, c)
		}
	}
	return listing(s, r, some, s.comment)
}

func (s *Server) createComment(r *request) reply {
	body, refusal, good := commentBody(r)
	if !good {
		return refusal
	}
	if r.issue.locked && !s.writes(r) {
		return fail(403, "Unable to create comment because issue is locked.")
	}
	c := s.addComment(r.issue, r.who.login, body)
	c.byApp = r.who.kind == installationToken
	s.echo(s.commentEvent("created", c, r.who.login))
	return created(s.comment(c))
}

func (s *Server) editComment(r *request, c *Comment) reply {
	body, refusal, good := commentBody(r)
	if !good {
		return refusal
	}
	// Writing the same text again counts as an edit and moves updated_at, but
	// is no event.
	c.before, c.Body, c.UpdatedAt, c.Edits = c.Body, body, s.now(), c.Edits+1
	if c.before != body {
		s.echo(s.commentEvent("edited", c, r.who.login))
	}
	return ok(s.comment(c))
}

func commentBody(r *request) (body string, refusal reply, good bool) {
	var ask struct{ Body string }
	if a, good := decode(r, &ask); !good {
		return "", a, false
	}
	problem := ""
	switch {
	case ask.Body == "":
		problem = "Body cannot be blank"
	case tooLong(ask.Body):
		problem = bodyTooLong
	default:
		return ask.Body, reply{}, true
	}
	return "", invalid("Validation Failed", object{
		"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": problem,
	}), false
}

func tooLong(body string) bool { return utf8.RuneCountInString(body) > maxComment }

func (s *Server) comment(c *Comment) object {
	p := c.on
	api := s.APIURL() + "repos/" + p.repo.FullName()
	// issue_url carries the number: that is how a comment is mapped to its pull
	// request when only the comment is known.
	o := object{
		"id": c.ID, "node_id": node("IssueComment", c.ID), "body": c.Body, "user": s.user(c.User),
		"created_at": stamp(c.CreatedAt), "updated_at": stamp(c.UpdatedAt),
		"author_association": s.association(p.repo, c.User), "performed_via_github_app": nil,
		"url":       fmt.Sprintf("%s/issues/comments/%d", api, c.ID),
		"issue_url": fmt.Sprintf("%s/issues/%d", api, p.number),
		"html_url":  fmt.Sprintf("%s#issuecomment-%d", s.issueURL(p), c.ID),
		"reactions": tally(c.Reactions),
	}
	if c.byApp {
		o["performed_via_github_app"] = s.app()
	}
	return o
}

// commentEvent is an issue_comment webhook: a pull request shows there as an
// issue with a pull_request link.
func (s *Server) commentEvent(action string, c *Comment, sender string) event {
	body := s.envelope(c.on.repo, sender)
	body["action"], body["issue"], body["comment"] = action, s.issueJSON(c.on), s.comment(c)
	if action == "edited" {
		body["changes"] = object{"body": object{"from": c.before}}
	}
	return s.encode("issue_comment", body)
}
