package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// submitLimit keeps the promise of an answer within 3 s to a request by command or dialog.
const submitLimit = 2500 * time.Millisecond

// listener receives events and interactions, by HTTP or over a connection in Socket Mode.
type listener struct {
	secret      string // signs requests
	interpreter *interpreter
	buttons     *buttons
	inbound     *intake.Inbound
	inbox       intake.Inbox
	pressing    chan struct{} // interactions under way
	limit       time.Duration // to start a request
	now         func() time.Time
	log         *slog.Logger
}

// register adds the routes for requests that are signed with the secret. What is done after an answer ends with life.
func (l *listener) register(life context.Context, mux *http.ServeMux) {
	mux.HandleFunc("POST /slack/events", l.serveEvent)
	mux.HandleFunc("POST /slack/interactions", l.serveForm("payload", func(form url.Values) bool {
		return l.interact(life, []byte(form.Get("payload")))
	}))
	mux.HandleFunc("POST /slack/commands", l.serveForm("command", func(form url.Values) bool {
		return l.command(life, readCommand(form))
	}))
}

// serveEvent answers a request with an event. 200 means that it is stored; after anything else Slack sends it again.
func (l *listener) serveEvent(w http.ResponseWriter, r *http.Request) {
	body, status := l.readSigned(w, r)
	var env envelope
	if status == http.StatusOK && env.read(body) != nil {
		status = http.StatusBadRequest
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	if env.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, env.Challenge)
		return
	}
	// X-Slack-Retry-Num does not matter: the first attempt may have been the one that failed.
	if !l.accept(r.Context(), env) {
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// accept stores an event that errand may have to act on. After false the event must not be acknowledged, so that it
// comes again.
func (l *listener) accept(ctx context.Context, env envelope) bool {
	l.inbound.Accepted(l.now())
	if !env.matters() {
		return true
	}
	err := l.inbox.Accept(ctx, intake.Event{
		Source: sourceName, Kind: env.Event.Type, ID: env.EventID, Body: env.withoutToken(),
	})
	if err != nil {
		l.log.Warn("store event", "event", env.EventID, "err", err)
	}
	return err == nil
}

// readSigned reads the body of a request and refuses requests that are not signed by Slack.
func (l *listener) readSigned(w http.ResponseWriter, r *http.Request) (body []byte, status int) {
	body, status = intake.ReadBody(w, r, intake.MaxEvent)
	if status != http.StatusOK {
		return nil, status
	}
	// refuses timestamps that are more than 5 minutes away
	verifier, err := slack.NewSecretsVerifier(r.Header, l.secret)
	if err == nil {
		_, _ = verifier.Write(body) // a hash does not fail
		err = verifier.Ensure()
	}
	if err != nil {
		l.inbound.Refused(l.now())
		return nil, http.StatusUnauthorized
	}
	return body, http.StatusOK
}

// serveForm answers requests with an interaction or a slash command, which have that field. Slack does not send them
// again: it shows the user that it failed. take returns false if there are too many.
func (l *listener) serveForm(field string, take func(url.Values) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, status := l.readSigned(w, r)
		if status == http.StatusOK {
			form, err := url.ParseQuery(string(body))
			switch {
			case err != nil || !form.Has(field):
				status = http.StatusBadRequest
			case !take(form):
				status = http.StatusServiceUnavailable
			}
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		w.WriteHeader(http.StatusOK) // without a body, which Slack would show
	}
}

// interact deals with an interaction, a request in time for Slack's answer and anything else once Slack has it. It
// returns false if there are too many.
func (l *listener) interact(life context.Context, payload []byte) bool {
	l.inbound.Accepted(l.now())
	var in interaction
	if err := json.Unmarshal(payload, &in); err != nil {
		l.log.Warn("interaction dropped", "err", err) // it would be the same again
		return true
	}
	p, ok := in.press()
	if !ok {
		return true
	}
	do := l.buttons.handler(p)
	if p.action == submitted+render.ActionAsk {
		return l.finish(life, do)
	}
	return do == nil || l.start(life, do)
}

// maxPressing is how many interactions may be under way.
const maxPressing = 16

// start calls do in a goroutine. It returns false if too many interactions are under way.
func (l *listener) start(ctx context.Context, do func(context.Context)) bool {
	select {
	case l.pressing <- struct{}{}:
	default:
		l.log.Warn("interaction skipped", "limit", maxPressing)
		return false
	}
	go func() {
		defer func() { <-l.pressing }()
		do(ctx)
	}()
	return true
}

// timing is how a connection in Socket Mode is kept. Only tests change it.
type timing struct {
	pause    time.Duration // before connecting again; doubled up to maxPause while that fails
	maxPause time.Duration
	dead     time.Duration // a connection without any message, pings included, is dead after this
	idle     time.Duration // a connection without events is replaced after this
	linger   time.Duration // a replaced connection goes on for this
}

// Slack pings every few seconds. Sometimes pings go on and events stop; Slack repeats an event for the last time after
// some 6 minutes, so another connection is needed within that time. In a quiet workspace this costs one call.
var defaultTiming = timing{
	pause: time.Second, maxPause: time.Minute, dead: 30 * time.Second, idle: 5 * time.Minute, linger: 10 * time.Second,
}

// ackLimit is how long writing an acknowledgement may take.
const ackLimit = 5 * time.Second

// socketMode receives events over connections that it opens.
type socketMode struct {
	*listener
	api    *slack.Client
	timing timing
}

// run keeps a connection until ctx ends, whatever Slack answers: a wrong token or setting may be corrected there.
//
// slack-go's managed client is not used. It drops a connection, with all acknowledgements under way, before it asks for
// the next one, and it parses events more strictly.
func (s *socketMode) run(ctx context.Context) {
	pause := s.timing.pause
	for {
		greeted, err := s.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if greeted {
			pause = s.timing.pause
		}
		wait := pause + rand.N(pause) //nolint:gosec // only spreads the front doors of a fleet
		if limit, ok := retryAfter(err); ok {
			wait = max(wait, limit)
		}
		if err != nil {
			s.inbound.ConnectionFailed(err)
			s.log.Warn("connection to Slack", "err", err, "again", wait)
		}
		pause = min(2*pause, s.timing.maxPause)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// connect makes a connection and returns when another one is needed: with an error if this one has ended, without if
// it goes on for a while.
// greeted says that Slack accepted it.
func (s *socketMode) connect(ctx context.Context) (greeted bool, err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return false, fmt.Errorf("connect to Slack: %w", err)
	}
	c := newConnection(s, conn)
	go c.read(ctx)
	select {
	case <-c.leaving:
		time.AfterFunc(s.timing.linger, c.close)
	case <-c.ended:
		err = fmt.Errorf("connection to Slack ended: %w", c.err)
	}
	return c.greeted.Load(), err
}

// dial asks for a URL and connects to it. The URL holds a ticket and appears in no error.
func (s *socketMode) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, addr, err := s.api.StartSocketModeContext(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := url.Parse(addr); err != nil {
		return nil, errors.New("invalid URL from Slack")
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: callLimit}
	conn, resp, err := dialer.DialContext(ctx, addr, nil)
	if resp != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// frame is a message on a connection: an envelope around an event, or a message about the connection itself.
type frame struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Reason     string          `json:"reason"` // of a disconnect
}

// connection is one connection in Socket Mode. An event is acknowledged on the connection that it came by, and only
// when it is stored; Slack sends it again otherwise.
type connection struct {
	*socketMode
	conn    *websocket.Conn
	idle    *time.Timer   // replaces a connection without events
	greeted atomic.Bool   // Slack accepted it
	leaving chan struct{} // closed when another connection is needed
	leave   func()        // closes leaving, once
	ended   chan struct{} // closed when it is not read any more
	err     error         // why that is; read only after ended is closed

	mu sync.Mutex // gorilla allows one writer at a time
}

func newConnection(s *socketMode, conn *websocket.Conn) *connection {
	c := &connection{socketMode: s, conn: conn, leaving: make(chan struct{}), ended: make(chan struct{})}
	c.leave = sync.OnceFunc(func() { close(c.leaving) })
	c.idle = time.AfterFunc(s.timing.idle, c.leave)
	conn.SetReadLimit(intake.MaxEvent)
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		c.extendDeadline()
		return pong(data)
	})
	return c
}

// extendDeadline postpones the time at which the connection counts as dead.
func (c *connection) extendDeadline() { _ = c.conn.SetReadDeadline(time.Now().Add(c.timing.dead)) }

func (c *connection) close() { _ = c.conn.Close() }

// read handles messages until the connection or ctx ends.
func (c *connection) read(ctx context.Context) {
	stop := context.AfterFunc(ctx, c.close)
	defer func() {
		stop()
		c.idle.Stop()
		c.close()
		if c.greeted.Load() {
			c.inbound.Disconnected()
		}
		close(c.ended)
	}()
	for {
		c.extendDeadline()
		_, message, err := c.conn.ReadMessage()
		if err != nil {
			c.err = err
			return
		}
		c.onFrame(ctx, message)
	}
}

func (c *connection) onFrame(ctx context.Context, message []byte) {
	var f frame
	err := json.Unmarshal(message, &f) // after an error in one field, the others are still set
	switch {
	case f.Type == "hello":
		if c.greeted.CompareAndSwap(false, true) {
			c.inbound.Connected()
		}
	case f.Type == "disconnect":
		c.log.Info("Slack asks for another connection", "reason", f.Reason)
		c.leave()
	case f.EnvelopeID == "":
		c.log.Warn("message without envelope", "type", f.Type, "err", err)
	default:
		c.idle.Reset(c.timing.idle)
		c.onEnvelope(ctx, f)
	}
}

// onEnvelope stores an event; the connection is not read on before that. An event that errand cannot use is
// acknowledged: it would be the same again.
func (c *connection) onEnvelope(ctx context.Context, f frame) {
	var env envelope
	switch {
	case f.Type == "interactive", f.Type == "slash_commands":
		go c.onAction(ctx, f)
		return
	case f.Type != "events_api":
		c.inbound.Accepted(c.now())
	case env.read(f.Payload) != nil:
		c.log.Warn("event dropped", "envelope", f.EnvelopeID)
	case !c.accept(ctx, env):
		return
	}
	c.ack(f.EnvelopeID)
}

// onAction deals with an interaction or a slash command. Without an acknowledgement Slack shows the user that it
// failed.
func (c *connection) onAction(ctx context.Context, f frame) {
	var said command
	switch {
	case f.Type == "interactive":
		if !c.interact(ctx, f.Payload) {
			return
		}
	case json.Unmarshal(f.Payload, &said) == nil && !c.command(ctx, said):
		return
	}
	c.ack(f.EnvelopeID)
}

// ack tells Slack that an envelope is dealt with. If that is lost with its connection, the event comes again and
// finds its task.
func (c *connection) ack(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(ackLimit))
	_ = c.conn.WriteJSON(map[string]string{"envelope_id": id})
}
