package slack

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/errand-fleet/errand/tasks"
)

// ackLimit is how long Slack may take to take an ack.
const ackLimit = 5 * time.Second

// frame is what Slack says on a connection: an envelope around an event, or a word about the connection itself.
type frame struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Reason     string          `json:"reason"` // of a disconnect
}

// link is one connection in Socket Mode. An event is acked on the connection it came by, and only when it is dealt with: what is not acked
// Slack sends again.
type link struct {
	source  *Source
	conn    *websocket.Conn
	quiet   *time.Timer   // replaces a connection without events
	greeted atomic.Bool   // Slack has let us in
	leaving chan struct{} // closed when there has to be another
	leave   func()        // closes leaving, once
	ended   chan struct{} // closed when it is read no more
	err     error         // why that is; read only after ended is closed

	mu sync.Mutex // gorilla has one writer at a time
}

func newLink(s *Source, conn *websocket.Conn) *link {
	l := &link{source: s, conn: conn, leaving: make(chan struct{}), ended: make(chan struct{})}
	l.leave = sync.OnceFunc(func() { close(l.leaving) })
	l.quiet = time.AfterFunc(s.rhythm.quiet, l.leave)
	conn.SetReadLimit(maxBody)
	pong := conn.PingHandler()
	conn.SetPingHandler(func(data string) error {
		l.alive()
		return pong(data)
	})
	return l
}

// alive puts off the time at which the connection counts as dead.
func (l *link) alive() { _ = l.conn.SetReadDeadline(time.Now().Add(l.source.rhythm.pings)) }

func (l *link) close() { _ = l.conn.Close() }

// read takes what comes until the connection or ctx ends.
func (l *link) read(ctx context.Context, d *tasks.Desk) {
	stop := context.AfterFunc(ctx, l.close)
	defer func() {
		stop()
		l.quiet.Stop()
		l.close()
		if l.greeted.Load() {
			l.source.inbound.Disconnected()
		}
		close(l.ended)
	}()
	for {
		l.alive()
		_, message, err := l.conn.ReadMessage()
		if err != nil {
			l.err = err
			return
		}
		l.frame(ctx, d, message)
	}
}

// frame deals with one message.
func (l *link) frame(ctx context.Context, d *tasks.Desk, message []byte) {
	var f frame
	err := json.Unmarshal(message, &f) // of a field in another form the rest is read all the same
	switch {
	case f.Type == "hello":
		if l.greeted.CompareAndSwap(false, true) {
			l.source.inbound.Connected()
		}
	case f.Type == "disconnect":
		l.source.log.Info("Slack asks for another connection", "reason", f.Reason)
		l.leave()
	case f.EnvelopeID == "":
		l.source.log.Warn("message without envelope", "type", f.Type, "err", err)
	default:
		l.quiet.Reset(l.source.rhythm.quiet)
		l.envelope(ctx, d, f)
	}
}

// envelope hands an event on, in the background. Whatever we cannot use is acked as it is: it would come again the same.
func (l *link) envelope(ctx context.Context, d *tasks.Desk, f frame) {
	var env envelope
	switch {
	case f.Type == "interactive":
		if !l.source.interact(ctx, d, f.Payload) {
			return // whoever did it is told by Slack that it did not work, and may do it again
		}
	case f.Type != "events_api":
		l.source.inbound.Accepted(l.source.cfg.Now())
	case env.read(f.Payload) != nil:
		l.source.log.Warn("event dropped", "envelope", f.EnvelopeID)
	default:
		l.source.taking.GoWhenFree(ctx, func(ctx context.Context) { // until there is room, the connection is not read
			if l.source.handle(ctx, ctx, d, env) == nil {
				l.ack(f.EnvelopeID)
			}
		})
		return
	}
	l.ack(f.EnvelopeID)
}

// ack tells Slack that an envelope is dealt with. One that is lost with its connection costs nothing: the event comes again, and finds its
// task.
func (l *link) ack(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(ackLimit))
	_ = l.conn.WriteJSON(map[string]string{"envelope_id": id})
}
