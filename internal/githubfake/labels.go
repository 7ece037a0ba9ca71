package githubfake

import (
	"context"
	"fmt"
	"slices"
)

// LabelPR gives a pull request a label, as somebody with the right to do so
// would, and delivers "labeled".
func (s *Server) LabelPR(ctx context.Context, repo string, number int, label, user string) error {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("label: %w", err)
	}
	if !slices.Contains(p.labels, label) {
		p.labels = append(p.labels, label)
	}
	p.updated = s.now()
	e := s.pullEvent("labeled", p, user, object{"label": object{"name": label, "color": "ededed", "default": false}})
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

// EditPR changes what a pull request says of itself, as its author does, and
// delivers "edited".
func (s *Server) EditPR(ctx context.Context, repo string, number int, title, body string) error {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("edit: %w", err)
	}
	changes := object{"title": object{"from": p.title}, "body": object{"from": p.body}}
	p.title, p.body, p.updated = title, body, s.now()
	e := s.pullEvent("edited", p, p.user, object{"changes": changes})
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}
