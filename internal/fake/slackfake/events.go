package slackfake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The two events that one message can cause: Slack sends both, each with its own event_id, to an app that asks for
// both.
const (
	AppMention   = "app_mention" // not in direct messages
	MessageEvent = "message"
)

// Envelope is the outer part of an Events API request.
type Envelope struct {
	Token              string          `json:"token"` // Slack's old verification token; worth nothing
	TeamID             string          `json:"team_id"`
	APIAppID           string          `json:"api_app_id"`
	Event              any             `json:"event"`
	Type               string          `json:"type"`
	EventID            string          `json:"event_id"`
	EventTime          int64           `json:"event_time"` // Unix seconds
	Authorizations     []Authorization `json:"authorizations"`
	IsExtSharedChannel bool            `json:"is_ext_shared_channel"`
}

// Authorization names one installation that an event is for.
type Authorization struct {
	TeamID              string `json:"team_id"`
	UserID              string `json:"user_id"`
	IsBot               bool   `json:"is_bot"`
	IsEnterpriseInstall bool   `json:"is_enterprise_install"`
}

// deliveryKey is one event: its message and its kind.
type deliveryKey struct{ ts, kind string }

// delivery is what was sent for it. The body never changes, so a retry is the same bytes.
type delivery struct {
	body    []byte
	retries int // guarded by Server.mu
}

// Deliver sets the URL events are sent to, as that of /slack/events. Without one they go through Socket Mode.
func (s *Server) Deliver(to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventURL = to
}

// Mention stores a message in which User addresses the bot (its mention is put in front of a Text that has none) and
// sends the app_mention event. If that is not answered with 200, or not acked, there is an error, but the message is
// stored and ts is valid for Redeliver.
func (s *Server) Mention(ctx context.Context, m Message) (ts string, err error) {
	if at := "<@" + s.cfg.BotUserID + ">"; !strings.Contains(m.Text, at) {
		m.Text = strings.TrimSpace(at + " " + m.Text)
	}
	return s.say(ctx, m, AppMention)
}

// Post stores a message of User and sends the message event alone, as Slack does in channels the bot is in and in
// direct messages.
// With a BotID it is another bot's message. Errors are those of Mention.
func (s *Server) Post(ctx context.Context, m Message) (ts string, err error) {
	return s.say(ctx, m, MessageEvent)
}

// Redeliver sends an event of a stored message again. A kind that was sent before goes out as Slack's next retry:
// the same body, the
// same event_id, retry headers or, in Socket Mode, another envelope with the number of the retry. A kind that was
// not (MessageEvent of a Mention, say) goes out as a first delivery with its own id.
func (s *Server) Redeliver(ctx context.Context, ts, kind string) error {
	opt, err := s.nextDelivery(deliveryKey{ts, kind})
	if err != nil {
		return fmt.Errorf("deliver %s of %s: %w", kind, ts, err)
	}
	s.mu.Lock()
	pushed := s.eventURL == ""
	s.mu.Unlock()
	if pushed {
		if _, err := s.Push(ctx, EventsAPI, json.RawMessage(opt.Body), opt.RetryNum); err != nil {
			return fmt.Errorf("deliver %s of %s: %w", kind, ts, err)
		}
		return nil
	}
	resp, err := s.Send(ctx, nil, opt)
	if err != nil {
		return fmt.Errorf("deliver %s of %s: %w", kind, ts, err)
	}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return fmt.Errorf("deliver %s of %s: answered %s: %s", kind, ts, resp.Status, said)
	}
	return nil
}

// Envelope wraps an inner event as Slack does, under a new event_id. For Send.
func (s *Server) Envelope(event any) Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.envelope(event)
}

// envelope is Envelope for who holds mu.
func (s *Server) envelope(event any) Envelope {
	s.events++
	if own, ok := event.(wireMessage); ok {
		event = s.completeEvent(own.Type+" event", own)
	}
	return Envelope{
		Token: "unused", TeamID: s.cfg.TeamID, APIAppID: s.cfg.AppID, Event: event, Type: "event_callback",
		EventID: fmt.Sprintf("Ev%010d", s.events), EventTime: s.cfg.Now().Unix(),
		Authorizations: []Authorization{{TeamID: s.cfg.TeamID, UserID: s.cfg.BotUserID, IsBot: true}},
	}
}

// say stores a message and sends one event of it.
func (s *Server) say(ctx context.Context, m Message, kind string) (string, error) {
	ts, err := s.Seed(m)
	if err != nil {
		return "", err
	}
	return ts, s.Redeliver(ctx, ts, kind) // the first of its kind: not a retry
}

// nextDelivery is the event's first delivery, or the next retry of it.
func (s *Server) nextDelivery(key deliveryKey) (SendOptions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.deliveries[key]; d != nil {
		d.retries++
		return SendOptions{Body: d.body, RetryNum: d.retries}, nil
	}
	d, err := s.newDelivery(key)
	if err != nil {
		return SendOptions{}, err
	}
	return SendOptions{Body: d.body}, nil
}

// newDelivery makes the event of a stored message. The caller holds mu.
func (s *Server) newDelivery(key deliveryKey) (*delivery, error) {
	var r *record
	for _, other := range s.messages {
		if other.TS == key.ts { // a ts is unique in the whole workspace, not only in its channel
			r = other
		}
	}
	if r == nil {
		return nil, errors.New("no such message")
	}
	ch, _ := s.channel(r.Channel)
	event := s.wire(r, true)
	event.Type, event.Channel, event.EventTS = key.kind, r.Channel, r.TS
	event.ThreadTS = r.ThreadTS // an event tells of a message at its birth, when no root has replies yet
	event.ReplyCount, event.ReplyUsers, event.LatestReply, event.Reactions = 0, nil, "", nil
	if key.kind == AppMention {
		event.ParentUserID = "" // the SDK's type of app_mention does not have it
	}
	switch {
	case key.kind == MessageEvent:
		event.ChannelType = ch.kind()
		if r.User == "" {
			event.Team = ""
		}
		if len(r.Files) > 0 {
			event.SubType, event.Team = "file_share", "" // which the SDK's type does not have
		}
	case key.kind != AppMention:
		return nil, errors.New("no such event")
	case ch.kind() == "im": // Slack's reference of app_mention
		return nil, errors.New("a direct message causes no app_mention")
	}
	if ch.External {
		event.Files = onlyNamed(r.Files)
	}
	envelope := s.envelope(event)
	if author, known := s.user(r.User); ch.External && known {
		// not that of the app, which the authorizations name (slackapi/java-slack-sdk#629)
		envelope.IsExtSharedChannel, envelope.TeamID = true, author.TeamID
	}
	body, err := json.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	d := &delivery{body: body}
	s.deliveries[key] = d
	return d, nil
}
