package slackfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// React lets a user put a sign on a message, the bot's included, and sends the reaction_added event. Errors are those
// of Mention.
func (s *Server) React(ctx context.Context, user, channel, ts, name string) error {
	s.mu.Lock()
	r := s.find(channel, ts)
	if r == nil {
		s.mu.Unlock()
		return fmt.Errorf("react with %s: no such message", name)
	}
	i := slices.IndexFunc(r.reactions, func(re reaction) bool { return re.Name == name })
	if i < 0 {
		r.reactions = append(r.reactions, reaction{Name: name})
		i = len(r.reactions) - 1
	}
	if re := &r.reactions[i]; !slices.Contains(re.Users, user) {
		re.Users, re.Count = append(slices.Clone(re.Users), user), re.Count+1
	}
	event := answer{
		"type": "reaction_added", "user": user, "reaction": name, "item_user": r.User, "event_ts": s.nextTS(),
		"item": answer{"type": "message", "channel": channel, "ts": ts},
	}
	s.notify()
	s.mu.Unlock()
	return s.emit(ctx, event)
}

// Edit lets the author of a message change its text, and sends the message event of it. An empty text deletes it, as
// people do: with replies below it a tombstone stays. Errors are those of Mention.
func (s *Server) Edit(ctx context.Context, channel, ts, text string) error {
	s.mu.Lock()
	r := s.find(channel, ts)
	if r == nil {
		s.mu.Unlock()
		return fmt.Errorf("edit %s: no such message", ts)
	}
	ch, _ := s.channel(channel)
	event := answer{
		"type": MessageEvent, "subtype": "message_changed", "hidden": true, "channel": channel,
		"channel_type": ch.kind(), "ts": s.nextTS(), "event_ts": formatTS(s.lastMicros),
		"previous_message": s.wire(r, true),
	}
	switch {
	case text != "":
		r.Text = text
		r.Edits++
		r.EditedAt = append(slices.Clone(r.EditedAt), s.cfg.Now())
		event["message"] = s.wire(r, true)
	case len(s.replies(channel, ts)) > 0:
		r.User, r.Text, r.Files, r.Blocks = "USLACKBOT", "This message was deleted.", nil, nil
		event["message"] = answer{
			"type": "message", "subtype": "tombstone", "user": r.User, "text": r.Text, "hidden": true, "ts": ts,
			"thread_ts": ts,
		}
	default:
		s.messages = slices.DeleteFunc(s.messages, func(other *record) bool { return other == r })
		event["subtype"], event["deleted_ts"] = "message_deleted", ts
	}
	s.notify()
	s.mu.Unlock()
	return s.emit(ctx, event)
}

// emit sends an event that is not that of a new message, by HTTP or, without an address, through Socket Mode.
func (s *Server) emit(ctx context.Context, event any) error {
	body, err := json.Marshal(s.Envelope(event))
	if err != nil {
		return fmt.Errorf("send event: %w", err)
	}
	s.mu.Lock()
	pushed := s.eventURL == ""
	s.mu.Unlock()
	if pushed {
		_, err := s.Push(ctx, EventsAPI, json.RawMessage(body), 0)
		return err
	}
	resp, err := s.Send(ctx, nil, SendOptions{Body: body})
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("send event: answered %s", resp.Status)
	}
	return nil
}
