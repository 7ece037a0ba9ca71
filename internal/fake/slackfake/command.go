package slackfake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// Commands sets the URL that slash commands are sent to, as that of /slack/commands. Without one they go through
// Socket Mode.
func (s *Server) Commands(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commandURL = to
}

// Command lets a user give a slash command in a channel, also where the bot is not. The text is as Slack sends it, with
// &lt; for <. If it is not answered with 200, or not acked, there is an error.
func (s *Server) Command(ctx context.Context, user, channel, name, text string) error {
	fields, to, err := s.command(user, channel, name, text)
	if err == nil {
		err = s.sendCommand(ctx, to, fields)
	}
	if err != nil {
		return fmt.Errorf("give %s: %w", name, err)
	}
	return nil
}

func (s *Server) command(user, channel, name, text string) (fields map[string]string, to string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, person := s.user(user)
	ch, place := s.channel(channel)
	if !person || !place {
		return nil, "", errors.New("no such user or channel")
	}
	return map[string]string{
		"token": "unused", "team_id": s.cfg.TeamID, "team_domain": "errand", "is_enterprise_install": "false",
		"api_app_id": s.cfg.AppID, "channel_id": ch.ID, "channel_name": ch.Name, "user_id": u.ID, "user_name": u.Name,
		"command": name, "text": text, "response_url": s.newResponse(&record{Message: Message{Channel: ch.ID}}, u.ID),
		"trigger_id": s.newTrigger(u.ID),
	}, s.commandURL, nil
}

func (s *Server) sendCommand(ctx context.Context, to string, fields map[string]string) error {
	if to == "" {
		_, err := s.Push(ctx, SlashCommands, fields, 0)
		return err
	}
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	resp, err := s.post(ctx, to, "application/x-www-form-urlencoded", []byte(form.Encode()), SendOptions{})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// Shortcut lets a user choose the app's entry in the menu of a message, also where the bot is not, and sends the
// message_action interaction. Errors are those of Press.
func (s *Server) Shortcut(ctx context.Context, user, channel, ts, callbackID string) error {
	payload, to, err := s.shortcut(user, channel, ts, callbackID)
	if err == nil {
		err = s.interaction(ctx, to, payload)
	}
	if err != nil {
		return fmt.Errorf("choose shortcut %s: %w", callbackID, err)
	}
	return nil
}

func (s *Server) shortcut(user, channel, ts, callbackID string) (payload answer, to string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.user(user)
	r := s.find(channel, ts)
	if !ok || r == nil {
		return nil, "", errors.New("no such user or message")
	}
	ch, _ := s.channel(channel)
	return answer{
		"type": "message_action", "token": "unused", "callback_id": callbackID, "trigger_id": s.newTrigger(u.ID),
		"action_ts": s.nextTS(), "team": answer{"id": u.TeamID, "domain": "errand"}, "enterprise": nil,
		"is_enterprise_install": false, "user": wireUser(u), "channel": answer{"id": ch.ID, "name": ch.Name},
		"message_ts": ts, "message": s.wire(r, true),
		"response_url": s.newResponse(&record{Message: Message{Channel: ch.ID}}, u.ID),
	}, s.actionURL, nil
}
