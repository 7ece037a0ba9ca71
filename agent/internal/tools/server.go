package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Server offers the tools of one run to its CLI as an MCP server inside this process: the CLI sends each message in a control request, and
// takes the reply from the control response.
type Server struct {
	run     context.Context
	redact  *redact.Redactor
	failed  func(tool string, panicked any, stack []byte)
	session *mcp.ServerSession
	conn    *serverConn
}

// errWithdrawn ends a call that the agent has withdrawn.
var errWithdrawn = errors.New("the agent withdrew its call")

// Serve starts a server of tools that have passed Check. Calls end with run at the latest, the server with Close. failed is called for a
// tool that panicked.
func Serve(run context.Context, tools []Tool, redactor *redact.Redactor, failed func(tool string, panicked any, stack []byte)) *Server {
	s := &Server{run: run, redact: redactor, failed: failed, conn: newServerConn()}
	// Only tools, and always the same ones: nothing to announce, nothing to log to the client.
	server := mcp.NewServer(&mcp.Implementation{Name: ServerName, Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools {
		mcp.AddTool(server, &mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Input, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly},
			// The CLI would otherwise hide the tool until the model searches for it.
			Meta: mcp.Meta{"anthropic/alwaysLoad": true},
		}, func(ctx context.Context, _ *mcp.CallToolRequest, args json.RawMessage) (*mcp.CallToolResult, any, error) {
			text, err := s.call(ctx, t, args)
			if err != nil {
				return nil, nil, errors.New(s.redact.String(err.Error()))
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s.redact.String(text)}}}, nil, nil
		})
	}
	session, err := server.Connect(run, s.conn, nil)
	if err != nil {
		panic("serve tools: " + err.Error()) // only serverConn.Connect could fail
	}
	s.session = session
	return s
}

// call makes a call of a tool. request is the context of the MCP request, which does not end with the run.
func (s *Server) call(request context.Context, t Tool, args json.RawMessage) (_ string, err error) {
	ctx, cancel := context.WithCancelCause(s.run)
	defer cancel(nil)
	stop := context.AfterFunc(request, func() {
		if s.run.Err() == nil { // otherwise the run's cause is on its way
			cancel(errWithdrawn)
		}
	})
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			s.failed(t.Name, p, debug.Stack())
			err = errors.New("internal error of the tool")
		}
	}()
	return t.Run(ctx, args)
}

// Answer passes a message of the CLI to the server and returns the content of the control response. It returns when the call is over; the
// end of ctx withdraws the call.
func (s *Server) Answer(ctx context.Context, message json.RawMessage) (any, error) {
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return nil, fmt.Errorf("read MCP message: %w", err)
	}
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil, errors.New("unexpected MCP response")
	}
	reply, err := s.conn.Do(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("answer MCP message %s: %w", req.Method, err)
	}
	return map[string]any{"mcp_response": reply}, nil
}

// Close ends the server. No call may be running.
func (s *Server) Close() {
	_ = s.conn.Close()
	_ = s.session.Wait() // the end of the connection, as an error
}

// serverConn is the server's end of a connection on which each message is answered separately.
type serverConn struct {
	in     chan *jsonrpc.Request
	closed chan struct{}
	close  func()

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan<- *jsonrpc.Response
}

func newServerConn() *serverConn {
	c := &serverConn{in: make(chan *jsonrpc.Request), closed: make(chan struct{}), waiting: map[jsonrpc.ID]chan<- *jsonrpc.Response{}}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Do passes a request to the server and waits for its response. A notification has no response and is acknowledged, because the CLI waits for
// an answer to each control request.
func (c *serverConn) Do(ctx context.Context, r *jsonrpc.Request) (json.RawMessage, error) {
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

// put passes a message to the server, which takes it without waiting for other calls.
func (c *serverConn) put(r *jsonrpc.Request) error {
	select {
	case c.in <- r:
		return nil
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// withdraw cancels a call in the server's protocol.
func (c *serverConn) withdraw(id jsonrpc.ID) {
	params, _ := json.Marshal(map[string]any{"requestId": id.Raw()})               // a number or a string
	_ = c.put(&jsonrpc.Request{Method: "notifications/cancelled", Params: params}) // it fails only if the call is over
}

// Connect implements [mcp.Transport].
func (c *serverConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements [mcp.Connection].
func (c *serverConn) SessionID() string { return "" }

// Read implements [mcp.Connection]: the server reads the next message.
func (c *serverConn) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case r := <-c.in:
		return r, nil
	case <-c.closed:
		return nil, io.EOF
	}
}

// Write implements [mcp.Connection]: the server answers. Messages that are not responses are dropped, because the CLI cannot receive them.
func (c *serverConn) Write(_ context.Context, m jsonrpc.Message) error {
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
func (c *serverConn) Close() error {
	c.close()
	return nil
}
