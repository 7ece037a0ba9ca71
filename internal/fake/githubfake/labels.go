package githubfake

import (
	"context"
	"fmt"
	"slices"
)

// LabelPR gives a pull request a label, as a user with triage rights
// would, and delivers "labeled".
func (s *Server) LabelPR(ctx context.Context, repo string, number int, label, user string) error {
	s.mu.Lock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("label: %w", err)
	}
	s.addLabel(&p.issue, label, user)
	e := s.pullEvent("labeled", p, user, object{"label": object{"name": label, "color": "ededed", "default": false}})
	s.changed()
	s.mu.Unlock()
	return s.deliver(ctx, e)
}

// UnlabelPR takes a label away from a pull request. Nothing is delivered.
func (s *Server) UnlabelPR(repo string, number int, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return fmt.Errorf("unlabel: %w", err)
	}
	p.labels = slices.DeleteFunc(p.labels, func(have string) bool { return have == label })
	p.updated = s.now()
	s.changed()
	return nil
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
