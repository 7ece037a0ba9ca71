package slackfake_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
)

// socketApp is an app in Socket Mode made with slack-go's managed client, which answers as ack says.
type socketApp struct {
	*socketmode.Client
	events chan socketmode.Event // those that came in an envelope
}

func dial(t *testing.T, s *slackfake.Server, ack func(socketmode.Event) bool, opts ...socketmode.Option) *socketApp {
	t.Helper()
	api := slack.New("xoxb-test", slack.OptionAPIURL(s.APIURL()), slack.OptionAppLevelToken("xapp-test"))
	opts = append(opts, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	a := &socketApp{Client: socketmode.New(api, opts...), events: make(chan socketmode.Event, 100)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.RunContext(ctx)
	}()
	greeted := make(chan struct{}, 100)
	go func() {
		for {
			select {
			case e := <-a.Events:
				switch e.Type {
				case socketmode.EventTypeHello:
					greeted <- struct{}{}
				case socketmode.EventTypeEventsAPI, socketmode.EventTypeInteractive, socketmode.EventTypeSlashCommand:
					a.events <- e
					if ack(e) {
						_ = a.Ack(*e.Request)
					}
				}
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	<-greeted
	return a
}

func always(socketmode.Event) bool { return true }

func awaited(t *testing.T, s *slackfake.Server, what string, done func(*slackfake.Server) bool) {
	t.Helper()
	ctx := await.Context(t)
	if err := s.Wait(ctx, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Who has no URL gets events in envelopes, and again when they were not acked.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{AnswerWithin: time.Second})
	a := dial(t, s, func(e socketmode.Event) bool { return e.Request.RetryAttempt > 0 })
	ts, err := s.Mention(t.Context(), slackfake.Message{Channel: channel, User: alice, Text: "fix it"})
	if err == nil || !strings.Contains(err.Error(), "not acked") {
		t.Errorf("mention: %v", err)
	}
	if err := s.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
		t.Errorf("redeliver: %v", err)
	}
	first, second := <-a.events, <-a.events
	for i, e := range []socketmode.Event{first, second} {
		outer, _ := e.Data.(slackevents.EventsAPIEvent)
		mention, ok := outer.InnerEvent.Data.(*slackevents.AppMentionEvent)
		if !ok || mention.TimeStamp != ts || e.Request.RetryAttempt != i {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	equal(t, "the same event", string(second.Request.Payload), string(first.Request.Payload))
	if first.Request.EnvelopeID == second.Request.EnvelopeID {
		t.Error("an envelope was used twice")
	}
	equal(t, "stray acks", s.StrayAcks(), 0)
}

// A client comes back after a notice, and after the end of a connection without one; one that hears no pings takes
// it for dead.
func TestReconnect(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{PingEvery: 10 * time.Millisecond})
	dial(t, s, always, socketmode.OptionPingInterval(200*time.Millisecond))
	for n, trouble := range []func(){func() { s.Disconnect("warning") }, s.Cut, s.Silence} {
		trouble()
		awaited(t, s, "another connection", func(s *slackfake.Server) bool {
			return s.Dialled() == n+2 && s.Sockets() == 1
		})
	}
	if _, err := s.Push(t.Context(), slackfake.EventsAPI,
		s.Envelope(map[string]any{"type": "app_mention"}), 0); err != nil {
		t.Errorf("the last connection: %v", err)
	}
}

// A message should not arrive through a connection that was asked to disconnect or is dead.
func TestNoConnection(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{AnswerWithin: 10 * time.Millisecond})
	push := func() error {
		_, err := s.Push(t.Context(), slackfake.EventsAPI, s.Envelope(map[string]any{"type": "app_mention"}), 0)
		return err
	}
	if err := push(); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("without a connection: %v", err)
	}
	dial(t, s, always)
	s.Silence()
	if err := push(); err == nil || !strings.Contains(err.Error(), "not acked") {
		t.Errorf("in silence: %v", err)
	}
}

func TestConnectionsWantTheAppsToken(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	for token, code := range map[string]string{
		"xoxb-test": "not_allowed_token_type", "xapp-other": "invalid_auth", "": "not_authed",
	} {
		_, _,
			err := slack.New("", slack.OptionAPIURL(s.APIURL()), slack.OptionAppLevelToken(token)).StartSocketModeContext(t.Context())
		want(t, token, err, code)
	}
	_, err := slack.New("xapp-test", slack.OptionAPIURL(s.APIURL())).AuthTestContext(t.Context())
	want(t, "the app's token elsewhere", err, "not_allowed_token_type")
}

// A button arrives with the message it is in, by Socket Mode and by HTTP.
func TestPress(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	blocks := `[{"type":"actions","elements":[{"type":"button","action_id":"stop","value":"7","text":{"type":"plain_text","text":"Stop"}}]}]`
	var list slack.Blocks
	if err := json.Unmarshal([]byte(blocks), &list); err != nil {
		t.Fatal(err)
	}
	ts := post(t, c, slack.MsgOptionText("working", false), slack.MsgOptionBlocks(list.BlockSet...))
	a := dial(t, s, always)
	if err := s.Press(t.Context(), alice, channel, ts, "stop"); err != nil {
		t.Fatal(err)
	}
	e := <-a.events
	got, _ := e.Data.(slack.InteractionCallback)
	if len(got.ActionCallback.BlockActions) != 1 {
		t.Fatalf("interaction %+v", got)
	}
	action := got.ActionCallback.BlockActions[0]
	equal(t, "interaction", []string{
		string(got.Type), got.User.ID, got.Channel.ID, got.Message.Timestamp, action.ActionID, action.Value,
	},
		[]string{"block_actions", alice, channel, ts, "stop", "7"})
	for name, err := range map[string]error{
		"no button":  s.Press(t.Context(), alice, channel, ts, "go"),
		"no message": s.Press(t.Context(), alice, channel, "1600000000.000001", "stop"),
		"no user":    s.Press(t.Context(), "alice", channel, ts, "stop"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
