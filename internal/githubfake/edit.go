package githubfake

import (
	"context"
	"fmt"
	"slices"
)

// EditComment changes a comment in the conversation as a person would and
// delivers it.
func (s *Server) EditComment(ctx context.Context, repo string, number int, id int64, user, body string) error {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("edit comment: %w", err)
	}
	i := slices.IndexFunc(p.comments, func(c *Comment) bool { return c.ID == id })
	if i < 0 {
		s.mu.Unlock()
		return fmt.Errorf("edit comment: there is no %d in %s#%d", id, repo, number)
	}
	c := p.comments[i]
	c.Body, c.UpdatedAt, c.Edits = body, s.now(), c.Edits+1
	e := s.commentEvent("edited", c, user)
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}
