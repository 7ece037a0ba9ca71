package connlimit

import (
	"context"
	"net"
	"net/http"
	"slices"
	"testing"
)

// line is a connection that remembers that it was closed.
type line struct {
	net.Conn
	closed bool
}

func (l *line) Close() error {
	l.closed = true
	return nil
}

// exchange is a limiter with its connections.
type exchange struct {
	*Limiter
	lines []*line
	ctx   []context.Context
}

// enter adds connections.
func (e *exchange) enter(t *testing.T, n int) {
	t.Helper()
	for range n {
		l := &line{}
		e.lines = append(e.lines, l)
		e.ctx = append(e.ctx, e.Enter(t.Context(), l))
	}
}

// closed returns which connections were closed.
func (e *exchange) closed() (list []int) {
	for i, l := range e.lines {
		if l.closed {
			list = append(list, i)
		}
	}
	return list
}

// Each group holds as many connections as allowed, and not one more.
func TestBounds(t *testing.T) {
	t.Parallel()
	const limit = 2
	begin := func(e *exchange, i int) func() {
		done, ok := e.Use(e.ctx[i])
		if !ok {
			return nil
		}
		return done
	}
	for name, c := range map[string]struct {
		do     func(t *testing.T, e *exchange)
		closed []int
	}{
		"new ones":             {func(t *testing.T, e *exchange) { e.enter(t, limit) }, nil},
		"one new one too many": {func(t *testing.T, e *exchange) { e.enter(t, limit+1) }, []int{0}},
		"those in use": {func(t *testing.T, e *exchange) {
			for i := range limit {
				e.enter(t, 1)
				if begin(e, i) == nil {
					t.Errorf("request %d is refused", i)
				}
			}
		}, nil},
		"one in use too many": {func(t *testing.T, e *exchange) {
			var done func()
			for i := range limit {
				e.enter(t, 1)
				done = begin(e, i)
			}
			e.enter(t, 1)
			if begin(e, limit) != nil {
				t.Error("a request too many is answered")
			}
			e.State(e.lines[limit-1], http.StateClosed) // it ends with its request
			done()
			if begin(e, limit) == nil {
				t.Error("a request is refused although another has ended")
			}
		}, nil},
		"idle ones beside those in use": {func(t *testing.T, e *exchange) {
			e.enter(t, limit)
			begin(e, 0)()
			begin(e, 1)
		}, nil},
		"one idle too many beside those in use": {func(t *testing.T, e *exchange) {
			e.enter(t, limit)
			begin(e, 1)()
			begin(e, 0)()
			e.enter(t, 1)
			begin(e, 2)
		}, []int{1}}, // it has been idle for longest
		"an idle one that is used again": {func(t *testing.T, e *exchange) {
			e.enter(t, limit)
			begin(e, 1)()
			begin(e, 0)()
			begin(e, 1)()
			e.enter(t, 1)
			begin(e, 2)
		}, []int{0}},
		"those that send": {func(t *testing.T, e *exchange) {
			for i := range limit {
				e.enter(t, 1)
				e.receive(e.ctx[i])
			}
		}, nil},
		"one too many that sends": {func(t *testing.T, e *exchange) {
			for i := range limit + 1 {
				e.enter(t, 1)
				e.receive(e.ctx[i])
			}
		}, []int{0}},
		"those that have sent": {func(t *testing.T, e *exchange) {
			for i := range limit + 1 {
				e.enter(t, 1)
				e.receive(e.ctx[i])
				e.received(e.ctx[i])
			}
		}, nil},
		"closed ones": {func(t *testing.T, e *exchange) {
			for i := range 2 * limit {
				e.enter(t, 1)
				done := begin(e, i)
				e.State(e.lines[i], http.StateClosed)
				done()
			}
			if n := len(e.conns) + e.fresh.Len() + e.sending.Len() + e.idle.Len() + e.used; n > 0 {
				t.Errorf("%d are left", n)
			}
		}, nil},
	} {
		e := &exchange{Limiter: New(limit)}
		c.do(t, e)
		if got := e.closed(); !slices.Equal(got, c.closed) {
			t.Errorf("%s: closed %v, want %v", name, got, c.closed)
		}
	}
}
