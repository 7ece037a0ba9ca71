package githubfake

import (
	"context"
	"fmt"
	"slices"
	"time"
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
	p.updated = s.now()
	if !slices.Contains(p.labels, label) {
		p.labels = append(p.labels, label)
		p.labelled = append(p.labelled, labelling{s.id(), label, user, p.updated})
	}
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

// labelling is the event of a label that was given.
type labelling struct {
	id          int64
	label, user string
	at          time.Time
}

func (s *Server) labelRoutes() {
	// Of the events of an issue there are these.
	s.api("GET /repos/{o}/{r}/issues/{n}/events", "issues,pull_requests:read", func(r *request) reply {
		return listing(s, r, r.pull.labelled, func(l labelling) object {
			return object{
				"id": l.id, "event": "labeled", "actor": s.user(l.user), "created_at": stamp(l.at), "commit_id": nil,
				"label": object{"name": l.label, "color": "ededed"},
			}
		})
	})
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
