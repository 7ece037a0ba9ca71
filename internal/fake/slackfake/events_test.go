package slackfake_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

// app receives events as ours does: it verifies the signature, then reads.
type app struct {
	mu     sync.Mutex
	seen   []received
	status int // of the next answers; 0 means 200
}

type received struct {
	ID, Type, TS, Thread, User, Text, Channel, ChannelType, Bot string
	RetryNum, RetryReason                                       string
	Replies                                                     int  // of the message in the event
	Shared                                                      bool // the envelope says so
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	verifier, err := slack.NewSecretsVerifier(r.Header, "slack-secret")
	if err == nil {
		_, _ = verifier.Write(body)
		err = verifier.Ensure()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	got, err := read(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	got.RetryNum, got.RetryReason = r.Header.Get("X-Slack-Retry-Num"), r.Header.Get("X-Slack-Retry-Reason")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, got)
	if a.status != 0 {
		http.Error(w, "busy", a.status)
	}
}

// read takes an event apart with slack-go, which refuses envelopes that are not as Slack's.
func read(body []byte) (received, error) {
	event, err := slackevents.ParseEvent(json.RawMessage(body), slackevents.OptionNoVerifyToken())
	if err != nil {
		return received{}, err
	}
	outer, ok := event.Data.(*slackevents.EventsAPICallbackEvent)
	if !ok || event.TeamID != "T0ERRAND" || outer.Authorizations[0].UserID != bot {
		return received{}, errors.New("not for us")
	}
	switch e := event.InnerEvent.Data.(type) {
	case *slackevents.AppMentionEvent:
		return received{
			ID: outer.EventID, Type: e.Type, TS: e.TimeStamp, Thread: e.ThreadTimeStamp, User: e.User, Text: e.Text,
			Channel: e.Channel, Bot: e.BotID,
		}, nil
	case *slackevents.MessageEvent:
		return received{
			ID: outer.EventID, Type: e.Type, TS: e.TimeStamp, Thread: e.ThreadTimeStamp, User: e.User, Text: e.Text,
			Channel: e.Channel, ChannelType: e.ChannelType, Bot: e.BotID, Replies: e.Message.ReplyCount,
			Shared: outer.IsExtSharedChannel,
		}, nil
	}
	return received{}, errors.New("unknown event")
}

// listen connects a new app to the workspace.
func listen(t *testing.T, s *slackfake.Server) *app {
	t.Helper()
	a := &app{}
	web := httptest.NewServer(a)
	t.Cleanup(web.Close)
	s.Deliver(web.URL)
	return a
}

func TestMention(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	a := listen(t, s)
	root, err := s.Mention(t.Context(), slackfake.Message{Channel: channel, User: alice, Text: "fix it"})
	if err != nil {
		t.Fatal(err)
	}
	post(t, c, slack.MsgOptionText("working", false), slack.MsgOptionTS(root))
	again, err := s.Mention(t.Context(), slackfake.Message{
		Channel: channel, User: alice, Text: "hey <@U0ERRAND>, faster", ThreadTS: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "events", a.seen, []received{
		{ID: "Ev0000000001", Type: "app_mention", TS: root, User: alice, Text: "<@U0ERRAND> fix it", Channel: channel},
		{
			ID: "Ev0000000002", Type: "app_mention", TS: again, Thread: root, User: alice,
			Text: "hey <@U0ERRAND>, faster", Channel: channel,
		},
	})
	equal(t, "thread", texts(s.Messages(channel, root)),
		[]string{"<@U0ERRAND> fix it", "working", "hey <@U0ERRAND>, faster"})
}

func TestPostSendsTheMessageEvent(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{Channels: []slackfake.Channel{{ID: "G0GROUP", External: true}}})
	a := listen(t, s)
	for _, m := range []slackfake.Message{
		{Channel: channel, User: alice, Text: "one"},
		{Channel: "G0GROUP", User: alice, Text: "two"},
		{Channel: "D0DIRECT", User: alice, Text: "three"},
		{Channel: channel, User: "U0OTHERBOT", BotID: "B0OTHER", Text: "four"},
	} {
		if _, err := s.Post(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var got []received
	for _, e := range a.seen {
		got = append(got, received{Type: e.Type, ChannelType: e.ChannelType, Bot: e.Bot, Shared: e.Shared})
	}
	equal(t, "events", got, []received{
		{Type: "message", ChannelType: "channel"},
		{Type: "message", ChannelType: "group", Shared: true},
		{Type: "message", ChannelType: "im"},
		{Type: "message", ChannelType: "channel", Bot: "B0OTHER"},
	})
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	a := listen(t, s)
	ts, err := s.Mention(t.Context(), slackfake.Message{Channel: channel, User: alice, Text: "fix it"})
	if err != nil {
		t.Fatal(err)
	}
	// What happens to the message meanwhile does not change the event.
	post(t, c, slack.MsgOptionText("working", false), slack.MsgOptionTS(ts))
	for _, kind := range []string{
		slackfake.AppMention, slackfake.AppMention, slackfake.MessageEvent, slackfake.MessageEvent,
	} {
		if err := s.Redeliver(t.Context(), ts, kind); err != nil {
			t.Fatalf("redeliver %s: %v", kind, err)
		}
	}
	mention := received{
		ID: "Ev0000000001", Type: "app_mention", TS: ts, User: alice, Text: "<@U0ERRAND> fix it", Channel: channel,
	}
	message := mention
	message.ID, message.Type, message.ChannelType = "Ev0000000002", "message", "channel"
	retry := func(r received, num string) received {
		r.RetryNum, r.RetryReason = num, "http_timeout"
		return r
	}
	equal(t, "events", a.seen, []received{
		mention, retry(mention, "1"), retry(mention, "2"), message, retry(message, "1"),
	})
	equal(t, "messages", len(s.Messages(channel, "")), 1)

	if err := s.Redeliver(t.Context(), "1600000000.000001", slackfake.AppMention); err == nil {
		t.Error("redelivered an unknown message")
	}
	if err := s.Redeliver(t.Context(), ts, "reaction_added"); err == nil {
		t.Error("redelivered an event of another kind")
	}
}

func TestUnfriendlyAppIsAnErrorButTheMessageStands(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	a := listen(t, s)
	a.status = http.StatusServiceUnavailable
	ts, err := s.Mention(t.Context(), slackfake.Message{Channel: channel, User: alice, Text: "fix it"})
	if err == nil || ts == "" {
		t.Errorf("mention = %q, %v; want a ts and an error", ts, err)
	}
	a.status = 0
	if err := s.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
		t.Fatal(err)
	}
	equal(t, "retries", []string{a.seen[0].RetryNum, a.seen[1].RetryNum}, []string{"", "1"})
}

func TestMessagesThatCannotBe(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	a := listen(t, s)
	root := seed(t, s, slackfake.Message{Text: "root"})
	reply := seed(t, s, slackfake.Message{Text: "reply", ThreadTS: root})
	for name, m := range map[string]slackfake.Message{
		"no channel":                 {Channel: "general", User: alice},
		"no user":                    {Channel: channel, User: "alice"},
		"no thread":                  {Channel: channel, User: alice, ThreadTS: "1600000000.000001"},
		"reply to a reply":           {Channel: channel, User: alice, ThreadTS: reply},
		"mention in direct messages": {Channel: "D0DIRECT", User: alice},
	} {
		if _, err := s.Mention(t.Context(), m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	equal(t, "events", a.seen, []received(nil))
}

func TestSend(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	a := listen(t, s)
	event := s.Envelope(map[string]any{
		"type": "message", "channel": channel, "user": alice, "text": "raw", "ts": "1700000000.000100",
	})
	for _, tc := range []struct {
		name   string
		event  any
		opt    slackfake.SendOptions
		status int
	}{
		{"proper", event, slackfake.SendOptions{}, 200},
		{"retry", event, slackfake.SendOptions{RetryNum: 3, RetryReason: "http_error"}, 200},
		{"a little old", event, slackfake.SendOptions{Age: 4 * time.Minute}, 200},
		{"stale", event, slackfake.SendOptions{Age: 6 * time.Minute}, 401},
		{"from the future", event, slackfake.SendOptions{Age: -6 * time.Minute}, 401},
		{"wrong signature", event, slackfake.SendOptions{WrongSignature: true}, 401},
		{"unsigned", event, slackfake.SendOptions{Unsigned: true}, 401},
		{"signed nonsense", event, slackfake.SendOptions{Body: []byte("{")}, 400},
	} {
		resp, err := s.Send(t.Context(), tc.event, tc.opt)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if resp.StatusCode != tc.status {
			said, _ := io.ReadAll(resp.Body)
			t.Errorf("%s: answered %d %s, want %d", tc.name, resp.StatusCode, said, tc.status)
		}
	}
	equal(t, "accepted", len(a.seen), 3)
	equal(t, "retry headers", []string{a.seen[1].RetryNum, a.seen[1].RetryReason}, []string{"3", "http_error"})
	equal(t, "nothing is stored", len(s.Messages(channel, "")), 0)
}

func TestSendWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{AnswerWithin: time.Millisecond})
	if _, err := s.Send(t.Context(), s.Envelope(nil), slackfake.SendOptions{}); err == nil {
		t.Error("sent to nowhere")
	}
	quit := make(chan struct{})
	mute := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-quit }))
	defer mute.Close()
	defer close(quit)
	s.Deliver(mute.URL)
	if _, err := s.Send(t.Context(), s.Envelope(nil), slackfake.SendOptions{}); err == nil {
		t.Error("an app that does not answer in time is no error")
	}
}
