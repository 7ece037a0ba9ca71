package slackfake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Interactivity sets the URL that interactions are sent to, as that of /slack/interactions. Without one they go through
// Socket Mode.
func (s *Server) Interactivity(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.actionURL = to
}

// Press lets a user press a button of a message, an ephemeral one included, and sends the block_actions interaction. If
// it is not answered with 200, or not acked, there is an error.
func (s *Server) Press(ctx context.Context, user, channel, ts, actionID string) error {
	payload, to, err := s.act(user, channel, ts, func(raw json.RawMessage) (answer, error) {
		button, ok := element(raw, actionID)
		if !ok || button["type"] != "button" {
			return nil, errors.New("no such button")
		}
		return button, nil
	})
	if err == nil {
		err = s.interaction(ctx, to, payload)
	}
	if err != nil {
		return fmt.Errorf("press %s: %w", actionID, err)
	}
	return nil
}

// interaction sends what a user did, by HTTP or, without an address, by Socket Mode.
func (s *Server) interaction(ctx context.Context, to string, payload answer) error {
	if to == "" {
		_, err := s.Push(ctx, Interactive, payload, 0)
		return err
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	form := url.Values{"payload": {string(body)}}.Encode()
	resp, err := s.post(ctx, to, "application/x-www-form-urlencoded", []byte(form), SendOptions{})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// act is the interaction of a user with one element of a message, and where it goes.
func (s *Server) act(user, channel, ts string, find func(blocks json.RawMessage) (answer, error)) (payload answer,
	to string, err error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.user(user)
	if !ok {
		return nil, "", fmt.Errorf("no user %q", user)
	}
	r, ephemeral := s.find(channel, ts), false
	for _, e := range s.ephemeral {
		if e.Channel == channel && e.TS == ts && e.to == user {
			r, ephemeral = e, true
		}
	}
	if r == nil {
		return nil, "", errors.New("no such message")
	}
	action, err := find(r.Blocks)
	if err != nil {
		return nil, "", err
	}
	action["action_ts"] = s.nextTS()
	values := answer{} // of menus alone
	if chosen, ok := action["selected_option"]; ok {
		values[action["block_id"].(string)] = answer{action["action_id"].(string): answer{
			"type": action["type"], "selected_option": chosen,
		}}
	}
	ch, _ := s.channel(channel)
	container := answer{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": ephemeral}
	if r.ThreadTS != "" {
		container["thread_ts"] = r.ThreadTS
	}
	return answer{
		"type": "block_actions", "token": "unused", "api_app_id": s.cfg.AppID, "trigger_id": s.newTrigger(u.ID),
		"team": answer{"id": u.TeamID, "domain": "errand"}, "enterprise": nil, "is_enterprise_install": false,
		"user":      wireUser(u),
		"channel":   answer{"id": ch.ID, "name": ch.Name},
		"container": container,
		"message":   s.wire(r, true), "state": answer{"values": values}, "actions": []answer{action},
		"response_url": s.newResponse(r, u.ID),
	}, s.actionURL, nil
}

// element finds what has that action_id in a block of actions.
func element(raw json.RawMessage, actionID string) (answer, bool) {
	var blocks []struct {
		BlockID  string   `json:"block_id"`
		Elements []answer `json:"elements"`
	}
	_ = json.Unmarshal(raw, &blocks) // the linter has seen them
	for i, b := range blocks {
		for _, e := range b.Elements {
			if e["action_id"] != actionID {
				continue
			}
			if e["block_id"] = b.BlockID; b.BlockID == "" {
				e["block_id"] = fmt.Sprintf("b%d", i)
			}
			return e, true
		}
	}
	return nil, false
}
