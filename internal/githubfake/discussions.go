package githubfake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Discussion says what OpenDiscussion opens.
type Discussion struct {
	Repo     string // "owner/name"
	Title    string
	Body     string
	User     string // the author, "octocat" when empty
	Category string // its name, "Q&A" when empty
}

// DiscussionComment is a comment in a discussion, or a reply to one.
type DiscussionComment struct {
	ID         int64
	Parent     int64 // the comment that it replies to; 0: it is one itself
	User, Body string
	CreatedAt  time.Time
	Edited     time.Time
	Edits      int
	Reactions  []Reaction

	on *discussion
}

// discussion is numbered with the issues. Guarded by Server.mu.
type discussion struct {
	id                          int64
	number                      int
	title, body, user, category string
	repo                        *Repo
	state                       string
	created, updated            time.Time
	edited, closed              time.Time
	locked, gone                bool
	comments                    []*DiscussionComment // and replies, oldest first
	reactions                   []Reaction
}

// OpenDiscussion starts a discussion as a person would and delivers "created".
func (s *Server) OpenDiscussion(ctx context.Context, o Discussion) (number int, err error) {
	s.mu.Lock()
	r, err := s.mustRepo(o.Repo)
	if err != nil {
		s.mu.Unlock()
		return 0, fmt.Errorf("open discussion: %w", err)
	}
	if o.User == "" {
		o.User = "octocat"
	}
	if o.Category == "" {
		o.Category = "Q&A"
	}
	now := s.now()
	r.lastNumber++
	d := &discussion{
		id: s.id(), number: r.lastNumber, title: o.Title, body: o.Body, user: o.User, category: o.Category, repo: r,
		state: "open", created: now, updated: now,
	}
	r.discussions = append(r.discussions, d)
	e := s.discussionEvent("created", d, o.User, nil)
	s.changed()
	s.mu.Unlock()
	return d.number, s.deliver(ctx, e)
}

// Discuss writes a comment in a discussion as a person would, or a reply if parent is a comment, and delivers
// "created".
func (s *Server) Discuss(ctx context.Context, repo string, number int, parent int64,
	user, body string,
) (id int64, err error) {
	err = s.alterDiscussion(ctx, repo, number, func(d *discussion) event {
		c := s.addToDiscussion(d, parent, user, body)
		id = c.ID
		return s.discussionCommentEvent("created", c, user, nil)
	})
	return id, err
}

func (s *Server) addToDiscussion(d *discussion, parent int64, user, body string) *DiscussionComment {
	c := &DiscussionComment{ID: s.id(), Parent: parent, User: user, Body: body, CreatedAt: s.now(), on: d}
	d.comments, d.updated = append(d.comments, c), c.CreatedAt
	return c
}

// EditDiscussion changes what a discussion says and delivers "edited".
func (s *Server) EditDiscussion(ctx context.Context, repo string, number int, user, title, body string) error {
	return s.alterDiscussion(ctx, repo, number, func(d *discussion) event {
		changes := object{"title": object{"from": d.title}, "body": object{"from": d.body}}
		d.title, d.body, d.edited = title, body, s.now()
		d.updated = d.edited
		return s.discussionEvent("edited", d, user, object{"changes": changes})
	})
}

// EditDiscussionComment changes a comment or a reply and delivers "edited".
func (s *Server) EditDiscussionComment(ctx context.Context, repo string, number int, id int64,
	user, body string,
) error {
	return s.alterDiscussionComment(ctx, repo, number, id, func(c *DiscussionComment) event {
		changes := object{"body": object{"from": c.Body}}
		c.Body, c.Edited, c.Edits = body, s.now(), c.Edits+1
		return s.discussionCommentEvent("edited", c, user, object{"changes": changes})
	})
}

// DeleteDiscussionComment removes a comment with its replies, or a reply, and delivers "deleted".
func (s *Server) DeleteDiscussionComment(ctx context.Context, repo string, number int, id int64, user string) error {
	return s.alterDiscussionComment(ctx, repo, number, id, func(c *DiscussionComment) event {
		e := s.discussionCommentEvent("deleted", c, user, nil)
		c.on.comments = slices.DeleteFunc(c.on.comments, func(o *DiscussionComment) bool {
			return o == c || o.Parent == c.ID
		})
		return e
	})
}

// ChangeDiscussion does what people do to a discussion and delivers it. action is "closed", "locked", "unlocked" or
// "deleted".
func (s *Server) ChangeDiscussion(ctx context.Context, repo string, number int, action, user string) error {
	var err error
	failed := s.alterDiscussion(ctx, repo, number, func(d *discussion) event {
		d.updated = s.now()
		switch action {
		case "closed":
			d.state, d.closed = "closed", d.updated
		case "locked", "unlocked":
			d.locked = action == "locked"
		case "deleted":
			d.gone = true
		default:
			err = errors.New("not an action")
			return event{}
		}
		return s.discussionEvent(action, d, user, nil)
	})
	return errors.Join(err, failed)
}

// TransferDiscussion moves a discussion to another repository, where it gets a new number and a new identity, and
// delivers "transferred".
func (s *Server) TransferDiscussion(ctx context.Context, repo string, number int, to, user string) error {
	return s.alterDiscussion(ctx, repo, number, func(d *discussion) event {
		r := s.repos[to]
		if r == nil {
			return event{}
		}
		r.lastNumber++
		made := *d
		made.id, made.number, made.repo = s.id(), r.lastNumber, r
		r.discussions = append(r.discussions, &made)
		d.gone = true
		changes := object{"new_discussion": s.discussionJSON(&made), "new_repository": s.repository(r)}
		return s.discussionEvent("transferred", d, user, object{"changes": changes})
	})
}

// DiscussionComments returns the comments and replies of a discussion, oldest first.
func (s *Server) DiscussionComments(repo string, number int) (all []DiscussionComment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.mustDiscussion(repo, number)
	if err != nil {
		return nil
	}
	for _, c := range d.comments {
		v := *c
		v.Reactions = slices.Clone(c.Reactions)
		all = append(all, v)
	}
	return all
}

// DiscussionReactions returns the reactions to a discussion itself.
func (s *Server) DiscussionReactions(repo string, number int) []Reaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := s.mustDiscussion(repo, number)
	if err != nil {
		return nil
	}
	return slices.Clone(d.reactions)
}

func (s *Server) mustDiscussion(repo string, number int) (*discussion, error) {
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil, err
	}
	if d := r.discussion(number); d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("no discussion %s#%d", repo, number)
}

func (r *Repo) discussion(number int) *discussion {
	for _, d := range r.discussions {
		if d.number == number && !d.gone {
			return d
		}
	}
	return nil
}

func (s *Server) alterDiscussion(ctx context.Context, repo string, number int, alter func(*discussion) event) error {
	s.mu.Lock()
	d, err := s.mustDiscussion(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("alter discussion: %w", err)
	}
	e := alter(d)
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

func (s *Server) alterDiscussionComment(ctx context.Context, repo string, number int, id int64,
	alter func(*DiscussionComment) event,
) error {
	var missing error
	err := s.alterDiscussion(ctx, repo, number, func(d *discussion) event {
		i := slices.IndexFunc(d.comments, func(c *DiscussionComment) bool { return c.ID == id })
		if i < 0 {
			missing = fmt.Errorf("no comment %d in %s#%d", id, repo, number)
			return event{}
		}
		return alter(d.comments[i])
	})
	return errors.Join(missing, err)
}

func (s *Server) discussionURL(d *discussion) string {
	return fmt.Sprintf("%s/%s/discussions/%d", s.url, d.repo.FullName(), d.number)
}

func (s *Server) discussionJSON(d *discussion) object {
	state := d.state
	if d.locked {
		state = "locked"
	}
	return object{
		"id": d.id, "node_id": node("Discussion", d.id), "number": d.number, "title": d.title, "body": d.body,
		"user": s.user(d.user), "state": state, "state_reason": nil, "locked": d.locked, "active_lock_reason": nil,
		"comments": len(d.comments), "repository_url": s.APIURL() + "repos/" + d.repo.FullName(),
		"html_url": s.discussionURL(d), "answer_html_url": nil, "answer_chosen_at": nil, "answer_chosen_by": nil,
		"created_at": stamp(d.created), "updated_at": stamp(d.updated),
		"author_association": s.association(d.repo, d.user),
		"category": object{
			"id": 1, "node_id": node("DiscussionCategory", 1), "repository_id": d.repo.id, "name": d.category,
			"slug": "category", "emoji": ":speech_balloon:", "description": "", "is_answerable": true,
			"created_at": stamp(d.repo.created), "updated_at": stamp(d.repo.created),
		},
	}
}

func (s *Server) discussionEvent(action string, d *discussion, sender string, more object) event {
	body := s.envelope(d.repo, sender)
	body["action"], body["discussion"] = action, s.discussionJSON(d)
	maps.Copy(body, more)
	return s.encode("discussion", body)
}

func (s *Server) discussionCommentEvent(action string, c *DiscussionComment, sender string, more object) event {
	updated, parent := c.Edited, any(nil)
	if updated.IsZero() {
		updated = c.CreatedAt
	}
	if c.Parent != 0 {
		parent = c.Parent
	}
	body := s.envelope(c.on.repo, sender)
	body["action"], body["discussion"] = action, s.discussionJSON(c.on)
	body["comment"] = object{
		"id": c.ID, "node_id": node("DiscussionComment", c.ID), "html_url": s.discussionCommentURL(c),
		"parent_id": parent, "child_comment_count": 0, "repository_url": c.on.repo.FullName(), "discussion_id": c.on.id,
		"author_association": s.association(c.on.repo, c.User), "user": s.user(c.User),
		"created_at": stamp(c.CreatedAt), "updated_at": stamp(updated), "body": c.Body, "reactions": tally(c.Reactions),
	}
	maps.Copy(body, more)
	return s.encode("discussion_comment", body)
}

func (s *Server) discussionCommentURL(c *DiscussionComment) string {
	return fmt.Sprintf("%s#discussioncomment-%d", s.discussionURL(c.on), c.ID)
}
