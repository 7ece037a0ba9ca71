package agent

import (
	queue "container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// LimitConnections keeps clients that only hold connections from locking others out of a server. Beyond limit connections that have not
// sent a whole request header yet, the oldest of these is closed; beyond limit others, the one that has been idle for longest is. While
// all of these are in use, a further request is answered 503. A connection in use, such as an event stream, is never closed.
//
// It sets ConnContext and ConnState and wraps Handler. Call it before the server serves.
func LimitConnections(s *http.Server, limit int) {
	c := newCrowd(limit)
	next := s.Handler
	s.ConnContext, s.ConnState = c.Enter, c.State
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// crowd is the connections of a server: strangers, who have not shown yet what they want, those in use, and those that are idle after that.
// Methods may be called from any goroutine.
type crowd struct {
	limit int // of strangers, and of the others

	mu        sync.Mutex
	strangers queue.List // of *guest, the oldest in front
	idle      queue.List // of *guest, idle for longest in front
	used      int
	guests    map[net.Conn]*guest
}

type guest struct {
	conn net.Conn
	in   *queue.List // nil: in use, or closed
	at   *queue.Element
}

func newCrowd(limit int) *crowd { return &crowd{limit: limit, guests: map[net.Conn]*guest{}} }

type guestKey struct{}

// Enter is for http.Server.ConnContext.
func (c *crowd) Enter(ctx context.Context, conn net.Conn) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &guest{conn: conn}
	c.guests[conn] = g
	c.enqueue(g, &c.strangers)
	if c.strangers.Len() > c.limit {
		c.drop(&c.strangers)
	}
	return context.WithValue(ctx, guestKey{}, g)
}

// State is for http.Server.ConnState.
func (c *crowd) State(conn net.Conn, s http.ConnState) {
	if s != http.StateClosed && s != http.StateHijacked {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.guests[conn]; g != nil {
		c.unqueue(g)
		delete(c.guests, conn)
	}
}

// Use says that a connection's request is being answered, until done is called. It is not ok when too many are.
func (c *crowd) Use(ctx context.Context) (done func(), ok bool) {
	g, known := ctx.Value(guestKey{}).(*guest)
	if !known {
		return func() {}, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used >= c.limit {
		return nil, false
	}
	c.unqueue(g)
	if c.used++; c.used+c.idle.Len() > c.limit {
		c.drop(&c.idle)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used--
		if c.guests[g.conn] == g {
			c.enqueue(g, &c.idle)
		}
	}, true
}

// enqueue puts a guest at the end of a list. The caller holds mu.
func (c *crowd) enqueue(g *guest, in *queue.List) { g.in, g.at = in, in.PushBack(g) }

// unqueue takes a guest out of its list. The caller holds mu.
func (c *crowd) unqueue(g *guest) {
	if g.in != nil {
		g.in.Remove(g.at)
		g.in, g.at = nil, nil
	}
}

// drop closes the first connection of a list, if there is one. The caller holds mu.
func (c *crowd) drop(from *queue.List) {
	if first := from.Front(); first != nil {
		g := first.Value.(*guest)
		c.unqueue(g)
		_ = g.conn.Close() // the server's goroutine for it ends
	}
}
