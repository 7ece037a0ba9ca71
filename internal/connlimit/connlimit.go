// Package connlimit bounds the connections of an HTTP server, so that clients that only hold connections do not block
// others.
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

// Server bounds the connections of a server whose requests need no token. It allows limit connections in each of three
// groups. If more have not sent a whole request header, it closes the oldest of them. If more have not sent the whole
// body of their request, it closes the oldest of those. If there are more of the others, it closes the one that has
// been idle for longest. If all of these are in use, it answers further requests with 503.
//
// It sets ConnContext and ConnState and wraps Handler. Call it before the server serves.
func Server(s *http.Server, limit int) {
	c := New(limit)
	next := s.Handler
	s.ConnContext, s.ConnState = c.Enter, c.State
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		use := c.Use
		if r.ContentLength != 0 { // the sender is not authenticated yet: it counts as in use only after the whole body
			use = c.receive
			r.Body = &receivedBody{r.Body, sync.OnceFunc(func() { c.received(r.Context()) })}
		}
		done, ok := use(r.Context())
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

// Limiter tracks the connections of a server in four groups: those without a whole request header, those that send a
// body, those in use, and idle ones. A server that requires a token calls Use after it has checked the token:
// connections without one stay in the first group.
type Limiter struct {
	limit int // of new ones, of those that send a body, and of the others

	mu      sync.Mutex
	fresh   queue.List // of *trackedConn, the oldest in front
	sending queue.List // of *trackedConn, the oldest in front
	idle    queue.List // of *trackedConn, idle for longest in front
	used    int
	conns   map[net.Conn]*trackedConn
}

type trackedConn struct {
	conn net.Conn
	in   *queue.List // nil: in use, or closed
	at   *queue.Element
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
	c.enqueue(g, &c.fresh)
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
	return c.begin(ctx, func(g *trackedConn) bool {
		if c.used >= c.limit {
			return false
		}
		c.use(g)
		return true
	})
}

// receive marks a connection as sending a body until received is called, and then as in use until done is called.
func (c *Limiter) receive(ctx context.Context) (done func(), ok bool) {
	return c.begin(ctx, func(g *trackedConn) bool {
		c.unqueue(g)
		c.enqueue(g, &c.sending)
		return true
	})
}

// received ends the state that receive begins. The request is answered regardless of the limit, because that takes
// little time.
func (c *Limiter) received(ctx context.Context) {
	_, _ = c.begin(ctx, func(g *trackedConn) bool {
		if g.in == &c.sending {
			c.use(g)
		}
		return true
	})
}

// begin calls mark with the connection of a request. It returns the function that ends the request.
func (c *Limiter) begin(ctx context.Context, mark func(*trackedConn) bool) (done func(), ok bool) {
	g, known := ctx.Value(connKey{}).(*trackedConn)
	if !known {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return func() { c.rest(g) }, mark(g)
}

// use counts a connection among those in use. The caller holds mu.
func (c *Limiter) use(g *trackedConn) {
	c.unqueue(g)
	g.used = true
	if c.used++; c.used+c.idle.Len() > c.limit {
		c.drop(&c.idle)
	}
}

// rest marks a connection as idle at the end of its request.
func (c *Limiter) rest(g *trackedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.used {
		g.used = false
		c.used--
	}
	c.unqueue(g)
	if c.conns[g.conn] == g {
		c.enqueue(g, &c.idle)
	}
}

// enqueue puts a connection at the end of a list, and closes the first one if there are too many. The caller holds mu.
func (c *Limiter) enqueue(g *trackedConn, in *queue.List) {
	if g.in, g.at = in, in.PushBack(g); in.Len() > c.limit {
		c.drop(in)
	}
}

// unqueue takes a connection out of its list. The caller holds mu.
func (c *Limiter) unqueue(g *trackedConn) {
	if g.in != nil {
		g.in.Remove(g.at)
		g.in, g.at = nil, nil
	}
}

// drop closes the first connection of a list, if any. The caller holds mu.
func (c *Limiter) drop(from *queue.List) {
	if first := from.Front(); first != nil {
		g := first.Value.(*trackedConn)
		c.unqueue(g)
		_ = g.conn.Close() // the server's goroutine for it ends
	}
}
