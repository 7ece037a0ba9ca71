package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
)

// timing is how a connection in Socket Mode is kept. Only tests change it.
type timing struct {
	pause    time.Duration // before connecting again; doubled up to maxPause while that fails
	maxPause time.Duration
	dead     time.Duration // a connection without any message, pings included, is dead after this
	idle     time.Duration // a connection without events is replaced after this
	linger   time.Duration // a replaced connection goes on for this
}

// Slack pings every few seconds. Sometimes pings go on and events stop; Slack repeats an event for the last time after some 6 minutes, so
// another connection is needed within that time. In a quiet workspace that costs a call.
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
	taking *intake.Background // events on their way to the desk
}

// run keeps a connection until ctx ends, whatever Slack answers: a wrong token or setting may be corrected there.
//
// slack-go's managed client is not used. It drops a connection, with all acknowledgements under way, before it asks for the next one, and
// it parses events more strictly.
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

// connect makes a connection and returns when another one is needed: with an error if this one has ended, without if it goes on for a while.
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

// connection is one connection in Socket Mode. An event is acknowledged on the connection that it came by, and only when it is dealt with;
// Slack sends it again otherwise.
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
	conn.SetReadLimit(maxBody)
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
	err := json.Unmarshal(message, &f) // after an error in one field, the others are set all the same
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

// onEnvelope deals with an event in the background. An event that errand cannot use is acknowledged: it would be the same again.
func (c *connection) onEnvelope(ctx context.Context, f frame) {
	var env envelope
	switch {
	case f.Type == "interactive":
		if !c.interact(ctx, f.Payload) {
			return // Slack shows the user that it failed
		}
	case f.Type != "events_api":
		c.inbound.Accepted(c.now())
	case env.read(f.Payload) != nil:
		c.log.Warn("event dropped", "envelope", f.EnvelopeID)
	default:
		c.taking.GoWhenFree(ctx, func(ctx context.Context) { // the connection is not read until there is room
			if c.handle(ctx, ctx, env) == nil {
				c.ack(f.EnvelopeID)
			}
		})
		return
	}
	c.ack(f.EnvelopeID)
}

// ack tells Slack that an envelope is dealt with. If that is lost with its connection, the event comes again and finds its task.
func (c *connection) ack(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(ackLimit))
	_ = c.conn.WriteJSON(map[string]string{"envelope_id": id})
}
