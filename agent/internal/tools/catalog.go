package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	experimental "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// tool describes a tool of the CLI, or one of errand.
type tool struct {
	neutral  string // a name for rules that belongs to no program
	verb     string // begins the description of a call
	arg      string // the argument that says what the call is about
	files    bool   // it accesses files, which pathsOf finds
	reads    bool   // and changes none
	harmless bool   // it changes nothing outside the conversation
}

// catalog has all known tools by the CLI's names: those of the profiles, those it adds by itself, and errand's. The
// CLI offers no to-do list unless its name is given (2.1.332). No neutral name is one of the CLI's, and all
// are different.
var catalog = map[string]tool{
	"Agent":        {neutral: "agent", verb: "Delegating:", arg: "description", harmless: true},
	"Task":         {neutral: "task", verb: "Delegating:", arg: "description", harmless: true},
	"Bash":         {neutral: "bash", verb: "Running", arg: "command"},
	"Skill":        {neutral: "skill", verb: "Using skill", arg: "skill"},
	"Read":         {neutral: "read", verb: "Reading", arg: "file_path", files: true, reads: true},
	"Glob":         {neutral: "find", verb: "Looking for", arg: "pattern", files: true, reads: true},
	"Grep":         {neutral: "grep", verb: "Searching for", arg: "pattern", files: true, reads: true},
	"Write":        {neutral: "write", verb: "Writing", arg: "file_path", files: true},
	"Edit":         {neutral: "edit", verb: "Editing", arg: "file_path", files: true},
	"NotebookEdit": {neutral: "notebook_edit", verb: "Editing", arg: "notebook_path", files: true},
	"WebFetch":     {neutral: "fetch", verb: "Fetching", arg: "url", harmless: true},
	"WebSearch":    {neutral: "search", verb: "Searching the web for", arg: "query", harmless: true},
	"ToolSearch":   {neutral: "find_tool", verb: "Looking for a tool:", arg: "query", harmless: true},
	"TaskStop":     {neutral: "stop", verb: "Stopping task", arg: "task_id"},

	"AskUserQuestion": {neutral: "ask", verb: "Asking a question"},
	answerTool:        {neutral: "answer", verb: "Submitting the result", harmless: true},

	ownTools + "ask_user":    {neutral: "ask_user", verb: "Asking a question", harmless: true},
	ownTools + "post_update": {neutral: "post_update", verb: "Posting an update", harmless: true},
	ownTools + "read_thread": {neutral: "read_thread", verb: "Reading the thread", harmless: true},
	ownTools + "attach_file": {neutral: "attach_file", verb: "Attaching", arg: "path"},
}

// Known reports whether errand knows a tool, or it belongs to an MCP server.
func Known(name string) bool {
	_, ok := catalog[name]
	return ok || strings.HasPrefix(name, "mcp__")
}

// Harmless reports whether a tool only reads or talks.
func Harmless(name string) bool { return catalog[name].reads || catalog[name].harmless }

// describeWidth is the maximum number of characters of a description: a line of a status message.
const describeWidth = 80

// Describe puts a tool call into words, such as "Reading agent/run.go": one line, without secrets. Paths are relative
// to dir.
func Describe(redactor *redact.Redactor, dir, name string, input json.RawMessage) string {
	t, ok := catalog[name]
	if !ok {
		return redact.Clip(redactor.OneLine("Using "+strings.ReplaceAll(strings.TrimPrefix(name, "mcp__"), "__", " ")),
			describeWidth)
	}
	what := t.subject(input)
	if strings.HasSuffix(t.arg, "path") && filepath.IsAbs(what) {
		what = relative(what, dir)
	}
	return redact.Clip(redactor.OneLine(t.verb+" "+what), describeWidth)
}

// lenient accepts all JSON that the CLI may produce.
var lenient = experimental.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// subject returns what a call is about according to the tool's argument; empty if the call lacks it or it is not text.
func (t tool) subject(input []byte) string {
	v := valueOf(input, t.arg)
	var text string
	if v.Kind() != '"' || experimental.Unmarshal(v, &text, lenient) != nil {
		return ""
	}
	return text
}

// valueOf returns the value of an argument of a call; nil if the call lacks it. If it occurs several times the last one
// counts, as for the CLI. Other arguments are skipped without being copied: they may have megabytes.
func valueOf(input []byte, name string) (found jsontext.Value) {
	dec := jsontext.NewDecoder(bytes.NewReader(input), lenient)
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return found
		}
		if token.String() != name {
			err = dec.SkipValue()
		} else {
			var v jsontext.Value
			v, err = dec.ReadValue()
			found = v.Clone()
		}
		if err != nil {
			return found
		}
	}
	return found
}

// ServerName is the name of the host's server: the agent sees its tools as mcp__errand__<name>.
const ServerName = "errand"

// Tool is a tool that the host of a run offers to the agent.
type Tool struct {
	Name        string          // unique in its run: lower-case letters, digits and _, at most 48 bytes
	Description string          // for the agent: what the tool does, and when to use it
	Input       json.RawMessage // JSON schema (2020-12) of the arguments: an object
	ReadOnly    bool            // it changes nothing, so the CLI makes its calls concurrently

	// Run makes a call, on its own goroutine; several calls may run at once. Its arguments fit the schema. The agent
	// gets its text, or its error, redacted. ctx ends with the run, with the run's cause, or when the agent withdraws
	// the call; Run must then return, because the run waits for it.
	Run func(ctx context.Context, args json.RawMessage) (string, error)
}

// New returns a Tool whose schema is that of the struct In: fields without omitempty are required, and a `jsonschema`
// tag describes its field. It panics if In has no schema, which is a mistake in the program.
func New[In any](name, description string, run func(context.Context, In) (string, error)) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("make tool %s: %v", name, err))
	}
	input, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("make tool %s: %v", name, err))
	}
	return Tool{
		Name: name, Description: description, Input: input,
		Run: func(ctx context.Context, args json.RawMessage) (string, error) {
			var in In
			if err := json.Unmarshal(args, &in); err != nil {
				return "", fmt.Errorf("read arguments: %w", err)
			}
			return run(ctx, in)
		},
	}
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

// Check returns an error if one of the tools cannot be offered.
func Check(tools []Tool) error {
	seen := map[string]bool{}
	for _, t := range tools {
		err := t.check()
		if err == nil && seen[t.Name] {
			err = errors.New("its name is taken")
		}
		if err != nil {
			return fmt.Errorf("tool %q: %w", t.Name, err)
		}
		seen[t.Name] = true
	}
	return nil
}

func (t Tool) check() error {
	switch {
	case !toolName.MatchString(t.Name):
		return errors.New("its name is not of the form [a-z][a-z0-9_]*")
	case t.Run == nil:
		return errors.New("it has no Run function")
	}
	_, err := t.schema()
	return err
}

// schema returns the schema of the arguments.
func (t Tool) schema() (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(t.Input, &schema); err != nil {
		return nil, fmt.Errorf("read its schema: %w", err)
	}
	if schema.Type != "object" {
		return nil, errors.New("its arguments are not an object")
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve its schema: %w", err)
	}
	return resolved, nil
}
