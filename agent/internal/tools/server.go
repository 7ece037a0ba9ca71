package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Server offers the tools of one run to its CLI as an MCP server inside this process: the CLI sends each message in a
// control request, and takes the reply from the control response.
type Server struct {
	run     context.Context
	redact  *redact.Redactor
	failed  func(tool string, panicked any, stack []byte)
	session *mcp.ServerSession
	conn    *serverConn
}

// errWithdrawn ends a call that the agent has withdrawn.
var errWithdrawn = errors.New("the agent withdrew its call")

// Serve starts a server of tools that have passed Check. Calls end with run at the latest, the server with Close.
// failed is called for a tool that panicked.
func Serve(
	run context.Context, tools []Tool, redactor *redact.Redactor, failed func(tool string, panicked any, stack []byte),
) *Server {
	s := &Server{run: run, redact: redactor, failed: failed, conn: newServerConn()}
	// Only tools, and always the same ones: nothing to announce, nothing to log to the client.
	server := mcp.NewServer(&mcp.Implementation{Name: ServerName, Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools {
		mcp.AddTool(server, &mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Input,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.ReadOnly},
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

// Answer passes a message of the CLI to the server and returns the content of the control response. It returns when the
// call is over; the end of ctx withdraws the call.
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
	c := &serverConn{
		in: make(chan *jsonrpc.Request), closed: make(chan struct{}),
		waiting: map[jsonrpc.ID]chan<- *jsonrpc.Response{},
	}
	c.close = sync.OnceFunc(func() { close(c.closed) })
	return c
}

// Do passes a request to the server and waits for its response. A notification has no response and is acknowledged,
// because the CLI waits for an answer to each control request.
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

// Write implements [mcp.Connection]: the server answers. Messages that are not responses are dropped, because the CLI
// cannot receive them.
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

// MCPServer is a server of tools outside this process, which the CLI of each run starts or connects to. The agent sees
// its tools as mcp__<name>__<tool>, and may call them without asking.
//
// In Args, and in the values of Env and Headers, {{.Thread}}, {{.Repo}} and {{.Run}} are replaced by the thread,
// repository and ID of the run. In Env and Headers {{env "NAME"}} is replaced by a variable of the worker's
// environment; give those that ServerSecrets returns to the redactor. The CLI expands ${NAME} from its own environment.
type MCPServer struct {
	Name     string // lower-case letters, digits and dashes
	Type     string // ServerStdio, ServerHTTP or ServerSSE
	Command  string // stdio: an absolute path, or a name to find on PATH; it runs in the directory of the run
	Args     []string
	Env      map[string]string // stdio: added to the CLI's environment
	URL      string            // http, sse
	Headers  map[string]string // http, sse
	Profiles []Profile         // that get it; empty: Write. Never Untrusted
}

// The values of MCPServer.Type.
const (
	ServerStdio = "stdio"
	ServerHTTP  = "http" // streamable HTTP
	ServerSSE   = "sse"  // its predecessor
)

var serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// CheckServers returns everything that is wrong with servers. It expands all values once.
func CheckServers(servers []MCPServer, getenv func(string) string) (errs []error) {
	seen := map[string]bool{ServerName: true}
	for _, m := range servers {
		err := m.check()
		if seen[m.Name] {
			err = errors.Join(err, errors.New("its name is taken"))
		}
		seen[m.Name] = true
		_, expandErr := m.Entry(Vars{Thread: "thread", Repo: "owner/name", Run: "run"}, getenv)
		if err = errors.Join(err, expandErr); err != nil {
			errs = append(errs, fmt.Errorf("MCP server %q: %w", m.Name, err))
		}
	}
	return errs
}

func (m MCPServer) check() error {
	stdio, remote := m.Type == ServerStdio, m.Type == ServerHTTP || m.Type == ServerSSE
	// In the working directory a relative path would be the checkout's own program.
	program := filepath.IsAbs(m.Command) || m.Command != "" && m.Command == filepath.Base(m.Command)
	switch {
	case !serverName.MatchString(m.Name):
		return errors.New("its name is not of the form [a-z][a-z0-9-]*")
	case !stdio && !remote:
		return fmt.Errorf("type %q is unknown", m.Type)
	case stdio && (!program || m.URL != "" || len(m.Headers) > 0):
		return errors.New("a server on stdio has a command, which is an absolute path or a bare name, " +
			"and neither URL nor headers")
	case remote && (m.URL == "" || m.Command != "" || len(m.Args)+len(m.Env) > 0):
		return fmt.Errorf("a server of type %s has a URL, and neither command, arguments nor environment", m.Type)
	}
	for _, p := range m.Profiles {
		if p != Write && p != Read {
			return fmt.Errorf("profile %q cannot have servers", p)
		}
	}
	return nil
}

// Serves reports whether runs of a profile get the server.
func (m MCPServer) Serves(p Profile) bool {
	if len(m.Profiles) == 0 {
		return p == Write
	}
	return slices.Contains(m.Profiles, p)
}

// serverOf returns the name of the server that a tool belongs to; empty for the CLI's own tools.
func serverOf(tool string) string {
	rest, _ := strings.CutPrefix(tool, "mcp__")
	name, _, ok := strings.Cut(rest, "__")
	if !ok || rest == tool {
		return ""
	}
	return name
}

// ServerSecrets returns the values of the environment that servers get, for the redactor. Variables that are not set
// are left out.
func ServerSecrets(servers []MCPServer, getenv func(string) string) []string {
	var found []string
	_ = CheckServers(servers, func(name string) string {
		value := getenv(name)
		if value != "" {
			found = append(found, value)
		}
		return value
	})
	return found
}

// Vars are the values that describe a run.
type Vars struct{ Thread, Repo, Run string }

// Entry is a server as the CLI reads it from its configuration.
type Entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Entry returns the server's entry for a run. The error names every value that cannot be expanded.
func (m MCPServer) Entry(v Vars, getenv func(string) string) (Entry, error) {
	public := func(string) (string, error) {
		return "", valueError("the arguments of a process are public: put it into env")
	}
	secret := func(name string) (string, error) {
		value, err := variable(name, getenv)
		if err == nil && strings.Contains(value, "${") {
			return "", valueError(name + " holds ${, which the CLI would expand again")
		}
		return value, err
	}
	var errs []error
	one := func(where, text string, env func(string) (string, error)) string {
		filled, err := fill(where, text, v, env)
		errs = append(errs, err)
		return filled
	}
	all := func(where string, values map[string]string) map[string]string {
		filled := maps.Clone(values)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			filled[key] = one(where+" "+key, values[key], secret)
		}
		return filled
	}
	e := Entry{Type: m.Type, Command: m.Command, URL: m.URL}
	for i, arg := range m.Args {
		e.Args = append(e.Args, one(fmt.Sprintf("argument %d", i+1), arg, public))
	}
	e.Env, e.Headers = all("env", m.Env), all("header", m.Headers)
	return e, errors.Join(errs...)
}

// variable returns a variable of the worker's environment, without the final line end of a file that it was set from.
func variable(name string, getenv func(string) string) (string, error) {
	if value := strings.Trim(getenv(name), "\r\n"); value != "" {
		return value, nil
	}
	return "", valueError(name + " is not set in the environment")
}

// Secret expands a value that may contain {{env "NAME"}} and belongs to no run.
func Secret(where, text string, getenv func(string) string) (string, error) {
	return fill(where, text, Vars{}, func(name string) (string, error) { return variable(name, getenv) })
}

// fill expands one value. Conditions and loops are refused: they could hide a mistake until the first run that reaches
// it.
func fill(where, text string, v Vars, env func(string) (string, error)) (string, error) {
	t, err := template.New(where).Funcs(template.FuncMap{"env": env}).Parse(text)
	if err != nil {
		return "", err
	}
	for _, n := range t.Root.Nodes {
		if k := n.Type(); k != parse.NodeText && k != parse.NodeAction {
			return "", fmt.Errorf("%s: %s: only values are allowed, such as {{.Repo}}", where, n)
		}
	}
	var b strings.Builder
	err = t.Execute(&b, v)
	if reason, ok := errors.AsType[valueError](err); ok {
		err = fmt.Errorf("%s: %w", where, reason) // without the template's own message
	}
	return b.String(), err
}

// valueError says why a value cannot be expanded.
type valueError string

func (e valueError) Error() string { return string(e) }
