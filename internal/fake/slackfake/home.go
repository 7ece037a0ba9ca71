package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// OpenHome lets a user open a tab of the app's page, "home" or "messages", and sends the app_home_opened event. Errors
// are those of Mention.
func (s *Server) OpenHome(ctx context.Context, user, tab string) error {
	s.mu.Lock()
	u, ok := s.user(user)
	event := answer{"type": "app_home_opened", "user": u.ID, "channel": "D0" + u.ID, "tab": tab, "event_ts": s.nextTS()}
	whole := s.completeEvent("app_home_opened event", event)
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("open home: no user %q", user)
	}
	return s.emit(ctx, whole)
}

// Home is what a user sees in the app's home tab; false if nothing was published.
func (s *Server) Home(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.homes[user]
	return v, ok
}

func (s *Server) viewsPublish(f url.Values) (answer, error) {
	u, ok := s.user(f.Get("user_id"))
	var v struct {
		Type   string          `json:"type"`
		Blocks json.RawMessage `json:"blocks"`
	}
	raw := json.RawMessage(f.Get("view"))
	if !ok || json.Unmarshal(raw, &v) != nil || v.Type != "home" {
		return refuse("invalid_arguments")
	}
	if problems := LintView(raw); len(problems) > 0 {
		return nil, apiError{code: "invalid_arguments", details: problems}
	}
	s.opened++
	view := View{ID: fmt.Sprintf("V%010d", s.opened), User: u.ID, Blocks: v.Blocks}
	s.homes[u.ID] = view
	s.notify()
	return answer{"view": answer{"id": view.ID, "type": "home", "blocks": view.Blocks}}, nil
}
