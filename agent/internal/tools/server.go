package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Server offers the tools of one run to its CLI as an MCP server inside this process: the CLI sends each message in a
// control request, and takes the reply from the control response.
type Server struct {
	run     context.Context
	tools   []Tool
	schemas []*jsonschema.Resolved // of the arguments of each tool
	redact  *redact.Redactor
	failed  func(tool string, panicked any, stack []byte)

	mu    sync.Mutex
	calls map[string]context.CancelFunc // that are under way, by the ID of the request
}

// errWithdrawn ends a call that the agent has withdrawn.
var errWithdrawn = errors.New("the agent withdrew its call")

// Serve returns a server of tools that have passed Check. Calls end with run at the latest. failed is called for a tool
// that panicked.
func Serve(
	run context.Context, tools []Tool, redactor *redact.Redactor, failed func(tool string, panicked any, stack []byte),
) *Server {
	s := &Server{run: run, tools: tools, redact: redactor, failed: failed, calls: map[string]context.CancelFunc{}}
	for _, t := range tools {
		schema, err := t.schema()
		if err != nil {
			panic("serve tools: " + err.Error()) // Check has passed it
		}
		s.schemas = append(s.schemas, schema)
	}
	return s
}

// message is a request of JSON-RPC, or a notification, which has no ID.
type message struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params json.RawMessage `json:"params"`
}

// object is a JSON object of the protocol.
type object map[string]any

// Answer answers a message of the CLI, and returns the content of the control response. It returns when the call is
// over; the end of ctx withdraws the call. A notification has no response and is acknowledged, because the CLI waits
// for an answer to each control request.
func (s *Server) Answer(ctx context.Context, text json.RawMessage) (any, error) {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read MCP message: %w", err)
	}
	if m.Method == "" {
		return nil, errors.New("the MCP message is no request")
	}
	reply := object{"jsonrpc": "2.0", "id": m.ID}
	if m.ID == nil {
		s.notified(m)
		reply["id"], reply["result"] = 0, object{}
	} else if result, code, err := s.result(ctx, m); err != nil {
		reply["error"] = object{"code": code, "message": err.Error()}
	} else {
		reply["result"] = result
	}
	return object{"mcp_response": reply}, nil
}

// notified handles a notification. Only the withdrawal of a call has an effect.
func (s *Server) notified(m message) {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if m.Method != "notifications/cancelled" || json.Unmarshal(m.Params, &params) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[string(params.ID)]; cancel != nil {
		cancel()
	}
}

// The codes of errors of JSON-RPC.
const (
	invalidRequest = -32600
	unknownMethod  = -32601
	invalidParams  = -32602
)

// result returns the result of a request, or an error with its code.
func (s *Server) result(ctx context.Context, m message) (_ any, code int, _ error) {
	var params struct {
		Version   string          `json:"protocolVersion"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil && m.Params != nil {
		return nil, invalidParams, fmt.Errorf("read parameters: %w", err)
	}
	switch m.Method {
	case "initialize": // all versions have what is used here
		return object{
			"protocolVersion": params.Version, "capabilities": object{"tools": object{}},
			"serverInfo": object{"name": ServerName, "version": "1"},
		}, 0, nil
	case "ping":
		return object{}, 0, nil
	case "tools/list":
		return object{"tools": s.list()}, 0, nil
	case "tools/call":
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if !s.begin(m.ID, cancel) {
			return nil, invalidRequest, errors.New("a call with this ID has not ended")
		}
		defer s.end(m.ID)
		said, err := s.invoke(ctx, params.Name, params.Arguments)
		if err != nil {
			said = err.Error()
		}
		content := []object{{"type": "text", "text": s.redact.String(said)}}
		return object{"content": content, "isError": err != nil}, 0, nil
	}
	return nil, unknownMethod, fmt.Errorf("unknown method %s", m.Method)
}

// begin records how a call is withdrawn. It returns false if a call with the ID has not ended.
func (s *Server) begin(id json.RawMessage, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[string(id)] != nil {
		return false
	}
	s.calls[string(id)] = cancel
	return true
}

func (s *Server) end(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, string(id))
}

func (s *Server) list() []object {
	list := []object{}
	for _, t := range s.tools {
		list = append(list, object{
			"name": t.Name, "description": t.Description, "inputSchema": t.Input,
			"annotations": object{"readOnlyHint": t.ReadOnly},
			// The CLI would otherwise hide the tool until the model searches for it.
			"_meta": object{"anthropic/alwaysLoad": true},
		})
	}
	return list
}

// invoke makes a call of the named tool if the arguments fit its schema.
func (s *Server) invoke(ctx context.Context, name string, args json.RawMessage) (string, error) {
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return "", fmt.Errorf("unknown tool %q", name)
	}
	if args == nil || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	var values map[string]any
	if err := json.Unmarshal(args, &values); err != nil {
		return "", fmt.Errorf("read arguments: %w", err)
	}
	if err := s.schemas[i].Validate(values); err != nil {
		return "", fmt.Errorf("check arguments: %w", err)
	}
	return s.call(ctx, s.tools[i], args)
}

// call makes a call of a tool. request is the context of the control request, which does not end with the run.
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
