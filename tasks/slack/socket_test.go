package slack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// newSocketDoor returns a front door that Slack reaches only by Socket Mode.
func newSocketDoor(t *testing.T, change func(*timing), fake ...slackfake.Config) *frontDoor {
	t.Helper()
	f := newFrontDoor(t, Config{}, rights.Policy{}, fake...)
	f.stop() // of the listener by HTTP
	f.Deliver("")
	f.cfg.SigningSecret, f.cfg.AppToken = "", "xapp-test"
	f.source = f.reborn()
	f.source.socket.timing.pause = time.Millisecond
	if change != nil {
		change(&f.source.socket.timing)
	}
	f.connect(f.desk)
	return f
}

// reborn returns a source with the present configuration of the old one.
func (f *frontDoor) reborn() *Source {
	f.Helper()
	s, err := New(f.cfg)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// connect listens for a desk in Socket Mode until f.stop.
func (f *frontDoor) connect(d *desk.Desk) {
	f.Helper()
	ctx, stop := context.WithCancel(f.Context())
	f.stop = stop
	if err := f.source.Listen(ctx, http.NewServeMux(), d); err != nil {
		f.Fatal(err)
	}
	f.until("the connection", func() bool { return f.Sockets() == 1 })
	f.greeted()
}

// greeted returns when the source has received the greeting of the newest connection: later envelopes are acknowledged.
func (f *frontDoor) greeted() {
	f.Helper()
	if _, err := f.Push(f.Context(), slackfake.SlashCommands, map[string]any{}, 0); err != nil {
		f.Fatalf("%v\nlog:\n%s", err, f.log)
	}
	if _, err := f.source.Inbound(); err != nil {
		f.Errorf("connected, but %v", err)
	}
}

// said waits for a line of the log.
func (f *frontDoor) said(text string) {
	f.Helper()
	ctx := await.Context(f.T)
	if !f.log.wait(ctx, text) {
		f.Fatalf("nobody said %q\nlog:\n%s", text, f.log)
	}
}

func TestSocketMode(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, nil)
	before := time.Now()
	ts := f.mention("fix it")
	if _, err := f.Post(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "not for us"}); err != nil {
		t.Error(err)
	}
	if err := f.Redeliver(t.Context(), ts, slackfake.MessageEvent); err != nil {
		t.Error(err)
	}
	equal(t, "tasks", f.prompts(), []string{"fix it"})
	f.until("the eyes", func() bool { return len(f.Reactions(general, ts)) == 1 })
	last, err := f.source.Inbound()
	if err != nil || last.Before(before) {
		t.Errorf("last event %v, %v", last, err)
	}
	equal(t, "stray acks", f.StrayAcks(), 0)

	f.stop()
	f.until("the end of the connection", func() bool { return f.Sockets() == 0 })
	if said := f.log.String(); said != "" {
		t.Errorf("log: %s", said)
	}
}

// An event that is not stored is not acknowledged, so that Slack sends it again.
func TestUnstoredEventIsNotAcked(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, nil, slackfake.Config{AnswerWithin: time.Second})
	f.inbox.Refuse(errors.New("Redis does not answer"))
	ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: "patience"})
	if err == nil || !strings.Contains(err.Error(), "not acked") {
		t.Errorf("mention: %v", err)
	}
	f.inbox.Refuse(nil)
	if err := f.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
		t.Error(err)
	}
	equal(t, "tasks", f.prompts(), []string{"patience"})
}

// Unusable envelopes are acknowledged, because they would come again unchanged. Text that is no envelope does no harm.
func TestOddEnvelopes(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, nil)
	for name, payload := range map[string]any{
		"text": "odd", "list": []int{1}, "number": 7, "nothing": nil,
		"an odd field": map[string]any{"type": map[string]any{}},
		"an odd event": f.Envelope(map[string]any{"type": "novelty", "user": 7}),
		"odd text":     f.Envelope(map[string]any{"type": "app_mention", "text": 7}),
	} {
		if _, err := f.Push(t.Context(), slackfake.EventsAPI, payload, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kind := range []string{slackfake.Interactive, slackfake.SlashCommands, "novelty"} {
		if _, err := f.Push(t.Context(), kind, map[string]any{"odd": true}, 0); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"type":"hello"}`, `{"type":7,"envelope_id":""}`} {
		f.Frame(text)
	}
	f.mention("after all of these")
	equal(t, "tasks", f.prompts(), []string{"after all of these"})
	equal(t, "connections", f.Dialled(), 1)
	f.Frame(`{"type":["odd"],"envelope_id":"e1","payload":{},"reason":7}`)
	f.until("the ack of an envelope that is odd outside", func() bool { return f.StrayAcks() == 1 })
}

// Slack asks for another connection. It is opened while the old one continues, so that no event in transit is lost.
func TestConnectionIsReplacedBeforeItGoes(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, func(r *timing) { r.linger = time.Minute })
	f.Disconnect("warning")
	f.until("the second connection beside the first", func() bool { return f.Dialled() == 2 && f.Sockets() == 2 })
	f.mention("hello")
	equal(t, "tasks", f.prompts(), []string{"hello"})

	f.stop()
	f.until("the end of both", func() bool { return f.Sockets() == 0 })
}

func TestReplacedConnectionIsClosed(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, func(r *timing) { r.linger = 10 * time.Millisecond })
	f.Disconnect("refresh_requested")
	f.until("the second connection alone", func() bool { return f.Dialled() == 2 && f.Sockets() == 1 })
}

// However a connection ends or dies, the source opens another.
func TestConnectionIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timing  func(*timing)
		trouble func(*slackfake.Server)
	}{
		"cut":                 {nil, (*slackfake.Server).Cut},
		"silence":             {func(r *timing) { r.dead = time.Second }, (*slackfake.Server).Silence},
		"pings and no events": {func(r *timing) { r.idle = 100 * time.Millisecond }, func(*slackfake.Server) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newSocketDoor(t, tc.timing, slackfake.Config{PingEvery: 10 * time.Millisecond})
			tc.trouble(f.Server)
			f.until("another connection", func() bool { return f.Dialled() > 1 && f.Sockets() > 0 })
			f.mention("hello")
			equal(t, "tasks", f.prompts(), []string{"hello"})
		})
	}
}

// Pings keep a connection open for longer than one without them would live.
func TestPingsAreLife(t *testing.T) {
	t.Parallel()
	fake := slackfake.Config{PingEvery: 50 * time.Millisecond}
	f := newSocketDoor(t, func(r *timing) { r.dead = 3 * time.Second }, fake)
	f.until("pings for four seconds", func() bool { return f.Pongs() >= 80 })
	equal(t, "connections", f.Dialled(), 1)
	f.mention("hello")
	equal(t, "tasks", f.prompts(), []string{"hello"})
}

// Slack may refuse for as long as it likes. The refusal is logged and retried, but not before the time that Slack
// names.
func TestSlackRefusesToConnect(t *testing.T) {
	t.Parallel()
	f := newSocketDoor(t, nil)
	f.Fail("apps.connections.open", slackfake.Failure{Times: 3, Error: "invalid_auth"})
	f.Cut()
	f.until("the connection", func() bool { return f.Dialled() == 2 && f.Sockets() == 1 })
	f.greeted()
	if said := f.log.String(); strings.Count(said, "invalid_auth") != 3 {
		t.Errorf("log: %s", said)
	}
	f.Fail("apps.connections.open", slackfake.Failure{RetryAfter: 60})
	calls := len(f.Calls("apps.connections.open"))
	f.Cut()
	f.said("again=1m0s")
	equal(t, "calls", len(f.Calls("apps.connections.open")), calls+1)
	if _, err := f.source.Inbound(); err == nil || !strings.Contains(err.Error(), "rate limit") {
		t.Errorf("health: %v", err)
	}
}

// The address of a connection contains a ticket that a reader of the log could use.
func TestTicketIsNotLogged(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"ws://127.0.0.1:1/link/?ticket=secret", "ws://127.0.0.1:1%zz/?ticket=secret", "ftp://127.0.0.1/?ticket=secret",
	} {
		client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			body := io.NopCloser(strings.NewReader(`{"ok":true,"url":"` + address + `"}`))
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
			}, nil
		})}
		s, err := New(Config{Token: "xoxb-1", AppToken: "xapp-1", HTTP: client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.socket.dial(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Without a signing secret the event URL does not exist: it would accept anyone's events.
func TestNoSecretNoAddress(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Token: "xoxb-1", AppToken: "xapp-1", Inbox: &taskstest.Inbox{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	mux := http.NewServeMux()
	if err := s.Listen(ctx, mux, nil); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/slack/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, pattern := mux.Handler(req); pattern != "" {
		t.Errorf("%s is served", pattern)
	}
	if last, err := s.Inbound(); err == nil || !last.IsZero() {
		t.Errorf("not connected: %v, %v", last, err)
	}
}
