package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolConn is the server's end of a connection on which every message is answered by itself.
type toolConn struct {
	in     chan *jsonrpc.Request
	closed chan struct{}
	close  func()

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan<- *jsonrpc.Response
}

func newToolConn() *toolConn {
	c := &toolConn{in: make(chan *jsonrpc.Request), closed: make(chan struct{}), waiting: map[jsonrpc.ID]chan<- *jsonrpc.Response{}}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Do hands a request in and waits for its response. A notification has none, and is acknowledged: the CLI waits for an answer to each
// control request.
func (c *toolConn) Do(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
	if !r.IsCall() {
		return json.RawMessage(`{"jsonrpc":"2.0","id":0,"result":{}}`), c.put(r)
	}
	reply := make(chan *jsonrpc.Response, 1)
	c.mu.Lock()
	_, taken := c.waiting[r.ID]
	if !taken {
		c.waiting[r.ID] = reply
	}
	c.mu.Unlock()
	if taken {
		return nil, fmt.Errorf("id %v is in use", r.ID.Raw())
	}
	if err := c.put(r); err != nil {
		return nil, err
	}
	withdrawn := context.AfterFunc(ctx, func() { c.withdraw(r.ID) })
	defer withdrawn()
	select {
	case m := <-reply:
		return jsonrpc.EncodeMessage(m)
	case <-c.closed:
		return nil, io.ErrClosedPipe
	}
}

// put hands a message to the server, which takes it without waiting for others to be done.
func (c *toolConn) put(r *jsonrpc.Request) error {
	select {
	case c.in <- r:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// withdraw tells the server in its own protocol that a call is not wanted any more.
func (c *toolConn) withdraw(id jsonrpc.ID) {
	params, _ := json.Marshal(map[string]any{"requestId": id.Raw()})               // a number or a string
	_ = c.put(&jsonrpc.Request{Method: "notifications/cancelled", Params: params}) // else it is over anyway
}

// Connect implements [mcp.Transport].
func (c *toolConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements [mcp.Connection].
func (c *toolConn) SessionID() string { return "" }

// Read implements [mcp.Connection]: the server takes the next message.
func (c *toolConn) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-c.in:
		return r, nil
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write implements [mcp.Connection]: the server answers. What it says of its own accord has nobody to hear it.
func (c *toolConn) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply, ok := c.waiting[r.ID]; ok {
		delete(c.waiting, r.ID)
		reply <- r
	}
	return nil
}

// Close implements [mcp.Connection]. It may be repeated.
func (c *toolConn) Close() error {
	c.close()
	return nil
}
