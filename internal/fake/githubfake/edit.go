package githubfake

import (
	"context"
	"fmt"
	"slices"
)

// EditComment changes a comment in the conversation as a person would and
// delivers it.
func (s *Server) EditComment(ctx context.Context, repo string, number int, id int64, user, body string) error {
	return s.alterComment(ctx, repo, number, id, func(_ *issue, c *Comment) event {
		c.before, c.Body, c.UpdatedAt, c.Edits = c.Body, body, s.now(), c.Edits+1
		return s.commentEvent("edited", c, user)
	})
}

// DeleteComment removes a comment from the conversation as a person would and
// delivers it.
func (s *Server) DeleteComment(ctx context.Context, repo string, number int, id int64, user string) error {
	return s.alterComment(ctx, repo, number, id, func(p *issue, c *Comment) event {
		e := s.commentEvent("deleted", c, user)
		p.comments = slices.DeleteFunc(p.comments, func(o *Comment) bool { return o == c })
		return e
	})
}

func (s *Server) alterComment(ctx context.Context, repo string, number int, id int64,
	alter func(*issue, *Comment) event,
) error {
	s.mu.Lock()
	p, err := s.mustIssue(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("alter comment: %w", err)
	}
	i := slices.IndexFunc(p.comments, func(c *Comment) bool { return c.ID == id })
	if i < 0 {
		s.mu.Unlock()
		return fmt.Errorf("alter comment: there is no %d in %s#%d", id, repo, number)
	}
	e := alter(p, p.comments[i])
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}
