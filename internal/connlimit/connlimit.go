// Package connlimit bounds the connections of an HTTP server, so that clients that only hold connections do not block
// others. A limit on accepted connections does not do that: whoever opens new ones all the time holds all places.
//
// It promises never to close a connection in use, such as an event stream. The server's own time limits still apply.
//
// All functions and methods may be called from any goroutine.
package connlimit

import (
	queue "container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// Server bounds the connections of a server whose requests need no token. It allows limit connections in use, and
// answers further requests with 503. Of the connections that are idle, or have not sent a whole request yet, it keeps
// the newest ones, limit of them.
//
// It sets ConnContext and ConnState and wraps Handler. Call it before the server serves.
func Server(s *http.Server, limit int) {
	c := New(limit)
	next := s.Handler
	s.ConnContext, s.ConnState = c.Enter, c.State
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			// The sender is not authenticated yet, so the connection counts as in use only after the whole body.
			r.Body = &receivedBody{r.Body, func() { _, _ = c.Use(r.Context()) }}
			if g, known := r.Context().Value(connKey{}).(*trackedConn); known {
				defer c.rest(g)
			}
			next.ServeHTTP(w, r)
			return
		}
		done, ok := c.Use(r.Context())
		if !ok {
			w.Header().Set("Connection", "close")
			http.Error(w, "too many connections are in use", http.StatusServiceUnavailable)
			return
		}
		defer done()
		next.ServeHTTP(w, r)
	})
}

// receivedBody is a request body that reports when it has been read to its end.
type receivedBody struct {
	io.ReadCloser
	received func()
}

func (b *receivedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.received()
	}
	return n, err
}

// Limiter tracks the connections of a server: those in use, and the others. A server that requires a token calls Use
// after it has checked the token: connections without one stay among the others.
type Limiter struct {
	limit int // of those in use, and of the others

	mu     sync.Mutex
	conns  map[net.Conn]*trackedConn
	others queue.List // of *trackedConn, the one that came or rests for longest in front
	used   int
}

type trackedConn struct {
	conn net.Conn
	at   *queue.Element // among the others; nil: it is in use, or closed
	used bool
}

// New returns a Limiter for a server that sets ConnContext and ConnState itself.
func New(limit int) *Limiter {
	return &Limiter{limit: limit, conns: map[net.Conn]*trackedConn{}}
}

type connKey struct{}

// Enter adds a connection. Use it in http.Server.ConnContext.
func (c *Limiter) Enter(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &trackedConn{conn: conn}
	c.conns[conn] = g
	c.enqueue(g)
	return context.WithValue(ctx, connKey{}, g)
}

// State tracks a connection's state. Use it as http.Server.ConnState.
func (c *Limiter) State(conn net.Conn, s http.ConnState) {
	if s != http.StateClosed && s != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.conns[conn]; g != nil {
		c.unqueue(g)
		delete(c.conns, conn)
	}
}

// Use marks a connection as in use until done is called. It returns false if too many are in use.
func (c *Limiter) Use(ctx context.Context) (done func(), ok bool) {
	g, known := ctx.Value(connKey{}).(*trackedConn)
	if !known {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !g.used {
		if c.used >= c.limit {
			return nil, false
		}
		c.unqueue(g)
		g.used = true
		c.used++
	}
	return func() { c.rest(g) }, true
}

// rest puts a connection among the others at the end of its request.
func (c *Limiter) rest(g *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.used {
		g.used = false
		c.used--
	}
	c.unqueue(g)
	if c.conns[g.conn] == g {
		c.enqueue(g)
	}
}

// enqueue puts a connection behind the others, and closes the first one if there are too many. The caller holds mu.
func (c *Limiter) enqueue(g *trackedConn) {
	g.at = c.others.PushBack(g)
	if c.others.Len() > c.limit {
		first := c.others.Front().Value.(*trackedConn)
		c.unqueue(first)
		_ = first.conn.Close() // the server's goroutine for it ends
	}
}

// unqueue takes a connection out of the others. The caller holds mu.
func (c *Limiter) unqueue(g *trackedConn) {
	if g.at != nil {
		c.others.Remove(g.at)
		g.at = nil
	}
}
