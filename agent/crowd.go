package agent

import (
	queue "container/list"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
)

// LimitConnections keeps clients that only hold connections from locking others out of a server. Beyond limit connections that have not
// sent a whole request header yet, the oldest of these is closed; beyond limit that have not sent the whole body of their request, the oldest of
// those is; beyond limit others, the one that has been idle for longest is. While all of these are in use, a further request is answered 503.
// A connection in use, such as an event stream, is never closed.
//
// It sets ConnContext and ConnState and wraps Handler. Call it before the server serves.
func LimitConnections(s *http.Server, limit int) {
	c := newCrowd(limit)
	next := s.Handler
	s.ConnContext, s.ConnState = c.Enter, c.State
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		use := c.Use
		if r.ContentLength != 0 { // nobody knows yet who sends it, so it takes no place in use before it is here
			use = c.Receive
			r.Body = &receivedBody{r.Body, sync.OnceFunc(func() { c.Received(r.Context()) })}
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

// crowd is the connections of a server: strangers, who have not shown yet what they want, those that send a body, those in use, and those that
// are idle after that.
// Methods may be called from any goroutine.
type crowd struct {
	limit int // of strangers, of those that send a body, and of the others

	mu        sync.Mutex
	strangers queue.List // of *guest, the oldest in front
	sending   queue.List // of *guest, the oldest in front
	idle      queue.List // of *guest, idle for longest in front
	used      int
	guests    map[net.Conn]*guest
}

type guest struct {
	conn net.Conn
	in   *queue.List // nil: in use, or closed
	at   *queue.Element
	used bool
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
	c.use(g)
	return func() { c.rest(g) }, true
}

// Receive says that the body of a connection's request is awaited, until Received is called, and that it is being answered then, until done is.
func (c *crowd) Receive(ctx context.Context) (done func(), ok bool) {
	g, known := ctx.Value(guestKey{}).(*guest)
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

// Received ends what Receive begins. What has come as far as this is answered however many there are: it takes no time.
func (c *crowd) Received(ctx context.Context) {
	g, known := ctx.Value(guestKey{}).(*guest)
	if !known {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.in == &c.sending {
		c.use(g)
	}
}

// use counts a guest among those in use. The caller holds mu.
func (c *crowd) use(g *guest) {
	c.unqueue(g)
	g.used = true
	if c.used++; c.used+c.idle.Len() > c.limit {
		c.drop(&c.idle)
	}
}

// rest is the end of a guest's request.
func (c *crowd) rest(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.used {
		g.used = false
		c.used--
	}
	c.unqueue(g)
	if c.guests[g.conn] == g {
		c.enqueue(g, &c.idle)
	}
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
