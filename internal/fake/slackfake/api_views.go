package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// View is a dialog that a user has in front of him.
type View struct {
	ID              string
	User            string // who sees it
	CallbackID      string
	PrivateMetadata string
	Blocks          json.RawMessage
}

// The limits of Slack's reference (views), in characters.
const (
	maxViewText     = 24 // title, submit, close
	maxViewMetadata = 3_000
	maxViewBlocks   = 100
)

// triggerLife is how long a trigger opens a dialog.
const triggerLife = 3 * time.Second

// trigger lets the app open one dialog for who has just done something. It is guarded by Server.mu.
type trigger struct {
	user string
	at   time.Time
	used bool
}

// newTrigger gives out a trigger id. The caller holds mu.
func (s *Server) newTrigger(user string) (id string) {
	id = fmt.Sprintf("%d.%s.%s", len(s.triggers)+1, s.cfg.TeamID, user)
	s.triggers[id] = &trigger{user: user, at: s.cfg.Now()}
	return id
}

// Views is what dialogs a user has in front of him, in order of their opening.
func (s *Server) Views(user string) []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []View
	for _, v := range s.views {
		if v.User == user {
			list = append(list, v)
		}
	}
	return list
}

func (s *Server) viewsOpen(f url.Values) (answer, error) {
	t := s.triggers[f.Get("trigger_id")]
	switch {
	case t == nil:
		return refuse("invalid_trigger_id")
	case t.used:
		return refuse("exchanged_trigger_id")
	case s.cfg.Now().Sub(t.at) > triggerLife:
		return refuse("expired_trigger_id")
	}
	var v struct {
		Type            string          `json:"type"`
		CallbackID      string          `json:"callback_id"`
		PrivateMetadata string          `json:"private_metadata"`
		Blocks          json.RawMessage `json:"blocks"`
	}
	raw := json.RawMessage(f.Get("view"))
	if json.Unmarshal(raw, &v) != nil || v.Type != "modal" {
		return refuse("invalid_arguments")
	}
	if problems := LintView(raw); len(problems) > 0 {
		return nil, apiError{code: "invalid_arguments", details: problems}
	}
	t.used = true
	s.opened++
	view := View{
		ID: fmt.Sprintf("V%010d", s.opened), User: t.user, CallbackID: v.CallbackID, PrivateMetadata: v.PrivateMetadata,
		Blocks: v.Blocks,
	}
	s.views = append(s.views, view)
	s.notify()
	return answer{"view": view.wire()}, nil
}

func (v View) wire() answer {
	return answer{
		"id": v.ID, "type": "modal", "callback_id": v.CallbackID, "private_metadata": v.PrivateMetadata,
		"blocks": v.Blocks,
	}
}

// Submit lets a user send a dialog off with what he has typed, by action_id, and sends the view_submission. The dialog
// closes when the app takes it; else there is an error, and it stays.
func (s *Server) Submit(ctx context.Context, view View, typed map[string]string) error {
	payload, to, err := s.viewSubmission(view, typed)
	if err != nil {
		return fmt.Errorf("submit %s: %w", view.ID, err)
	}
	if err := s.interaction(ctx, to, payload); err != nil {
		return fmt.Errorf("submit %s: %w", view.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views = slices.DeleteFunc(s.views, func(v View) bool { return v.ID == view.ID })
	s.notify()
	return nil
}

func (s *Server) viewSubmission(view View, typed map[string]string) (payload answer, to string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.views, func(v View) bool { return v.ID == view.ID }) {
		return nil, "", fmt.Errorf("no such dialog")
	}
	var blocks []struct {
		BlockID string `json:"block_id"`
		Element answer `json:"element"`
	}
	_ = json.Unmarshal(view.Blocks, &blocks) // the linter has seen them
	values := answer{}
	for i, b := range blocks {
		id, ok := b.Element["action_id"].(string)
		if !ok {
			continue
		}
		if b.BlockID == "" {
			b.BlockID = fmt.Sprintf("b%d", i)
		}
		var value any // of an optional field that was left empty: null
		if text := typed[id]; text != "" {
			value = text
		}
		values[b.BlockID] = answer{id: answer{"type": b.Element["type"], "value": value}}
	}
	u, _ := s.user(view.User)
	shown := view.wire()
	shown["state"], shown["team_id"], shown["app_id"] = answer{"values": values}, s.cfg.TeamID, s.cfg.AppID
	return answer{
		"type": "view_submission", "token": "unused", "api_app_id": s.cfg.AppID, "trigger_id": s.newTrigger(u.ID),
		"response_urls": []any{}, "team": answer{"id": u.TeamID, "domain": "errand"}, "enterprise": nil,
		"is_enterprise_install": false, "user": wireUser(u), "view": shown,
	}, s.actionURL, nil
}

func wireUser(u User) answer {
	return answer{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.TeamID}
}
