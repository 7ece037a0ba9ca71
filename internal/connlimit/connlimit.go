// Package connlimit bounds the connections of an HTTP server, so that clients that only hold connections lock nobody out.
//
// It promises that a connection in use, such as an event stream, is never closed. Time limits are the server's own.
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

// Server bounds the connections of a server whose requests need no token. Beyond limit connections that have not
// sent a whole request header yet, the oldest of these is closed; beyond limit that have not sent the whole body of their request, the oldest of
// those is; beyond limit others, the one that has been idle for longest is. While all of these are in use, a further request is answered 503.
//
// It sets ConnContext and ConnState and wraps Handler. Call it before the server serves.
func Server(s *http.Server, limit int) {
	c := New(limit)
	next := s.Handler
	s.ConnContext, s.ConnState = c.Enter, c.State
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		use := c.Use
		if r.ContentLength != 0 { // its sender is not authenticated yet, so it takes no place in use before it is here
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

// receivedBody is the body of a request that says when it has been read to its end.
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

// Limiter tracks the connections of a server: new ones without a whole request header, those that send a body, those in use, and idle ones.
// A server that asks for a token calls Use once it has seen the token: connections without one stay new.
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

// Enter is for http.Server.ConnContext.
func (c *Limiter) Enter(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &trackedConn{conn: conn}
	c.conns[conn] = g
	c.enqueue(g, &c.fresh)
	if c.fresh.Len() > c.limit {
		c.drop(&c.fresh)
	}
	return context.WithValue(ctx, connKey{}, g)
}

// State is for http.Server.ConnState.
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

// Use says that a connection's request is being answered, until done is called. It is not ok when too many are.
func (c *Limiter) Use(ctx context.Context) (done func(), ok bool) {
	g, known := ctx.Value(connKey{}).(*trackedConn)
	if !known {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used >= c.limit {
		return nil, false
	}
	c.use(g)
	return func() { c.rest(g) }, true
}

// receive says that the body of a connection's request is awaited, until received is called, and that it is being answered then, until done is.
func (c *Limiter) receive(ctx context.Context) (done func(), ok bool) {
	g, known := ctx.Value(connKey{}).(*trackedConn)
	if !known {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unqueue(g)
	c.enqueue(g, &c.sending)
	if c.sending.Len() > c.limit {
		c.drop(&c.sending)
	}
	return func() { c.rest(g) }, true
}

// received ends what receive begins. What has come as far as this is answered however many there are: it takes no time.
func (c *Limiter) received(ctx context.Context) {
	g, known := ctx.Value(connKey{}).(*trackedConn)
	if !known {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.in == &c.sending {
		c.use(g)
	}
}

// use counts a connection among those in use. The caller holds mu.
func (c *Limiter) use(g *trackedConn) {
	c.unqueue(g)
	g.used = true
	if c.used++; c.used+c.idle.Len() > c.limit {
		c.drop(&c.idle)
	}
}

// rest is the end of a connection's request.
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

// enqueue puts a connection at the end of a list. The caller holds mu.
func (c *Limiter) enqueue(g *trackedConn, in *queue.List) { g.in, g.at = in, in.PushBack(g) }

// unqueue takes a connection out of its list. The caller holds mu.
func (c *Limiter) unqueue(g *trackedConn) {
	if g.in != nil {
		g.in.Remove(g.at)
		g.in, g.at = nil, nil
	}
}

// drop closes the first connection of a list, if there is one. The caller holds mu.
func (c *Limiter) drop(from *queue.List) {
	if first := from.Front(); first != nil {
		g := first.Value.(*trackedConn)
		c.unqueue(g)
		_ = g.conn.Close() // the server's goroutine for it ends
	}
}
