package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolServer offers the tools of one run to its CLI as an MCP server inside this process: the CLI sends each message to it in a control
// request, and takes what comes back from the control response (claude-cli.md §8). Safe for concurrent use.
type toolServer struct {
	run     context.Context
	redact  *Redactor
	failed  func(tool string, panicked any, stack []byte)
	session *mcp.ServerSession
	conn    *toolConn
}

// errWithdrawn ends a call whose result the agent does not want any more.
var errWithdrawn = errors.New("the agent withdrew its call")

// serveTools starts a server whose calls end with run at the latest; it is over after Close. The tools have passed checkTools. failed is
// told of a tool that panicked.
func serveTools(run context.Context, tools []Tool, redact *Redactor, failed func(tool string, panicked any, stack []byte)) *toolServer {
	s := &toolServer{run: run, redact: redact, failed: failed, conn: newToolConn()}
	// Tools alone, and always the same ones: nothing to announce, nothing to log to the client.
	server := mcp.NewServer(&mcp.Implementation{Name: hostServer, Version: "1"}, &mcp.ServerOptions{
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
		panic("serve tools: " + err.Error()) // only toolConn.Connect could fail
	}
	s.session = session
	return s
}

// call runs a tool. call is the context of the one request, which knows nothing of the run's end.
func (s *toolServer) call(call context.Context, t Tool, args json.RawMessage) (_ string, err error) {
	ctx, cancel := context.WithCancelCause(s.run)
	defer cancel(nil)
	stop := context.AfterFunc(call, func() {
		if s.run.Err() == nil { // else the run's own cause is on its way
			cancel(errWithdrawn)
		}
	})
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			s.failed(t.Name, p, debug.Stack())
			err = errors.New("the tool failed for a reason of its own")
		}
	}()
	return t.Run(ctx, args)
}

// Answer hands a message of the CLI to the server and returns what the control response has to hold. It returns when the call is over;
// the end of ctx withdraws it.
func (s *toolServer) Answer(ctx context.Context, message json.RawMessage) (any, error) {
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return nil, fmt.Errorf("read MCP message: %w", err)
	}
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil, errors.New("the tools have asked for nothing")
	}
	reply, err := s.conn.Do(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("answer MCP message %s: %w", req.Method, err)
	}
	return map[string]any{"mcp_response": reply}, nil
}

// Close ends the server. No call may be under way.
func (s *toolServer) Close() {
	_ = s.conn.Close()
	_ = s.session.Wait() // the end of the connection, as an error
}

// toolFailed notes that a tool panicked, for those who can mend it.
func (l *liveRun) toolFailed(tool string, panicked any, stack []byte) {
	l.log.Note(time.Now(), "! the tool %s panicked: %v", tool, panicked)
	l.r.log.Error("host tool panicked", "run", l.spec.ID, "tool", tool, "err", fmt.Sprint(panicked), "stack", string(stack))
}
