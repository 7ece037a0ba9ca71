package tools

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/redact"
	experimental "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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

// catalog has all known tools by the CLI's names: those of the profiles, those it adds by itself, those of other versions, and errand's. No
// neutral name is one of the CLI's, and all are different.
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
	"MultiEdit":    {neutral: "multi_edit", verb: "Editing", arg: "file_path", files: true},
	"NotebookEdit": {neutral: "notebook_edit", verb: "Editing", arg: "notebook_path", files: true},
	"WebFetch":     {neutral: "fetch", verb: "Fetching", arg: "url", harmless: true},
	"WebSearch":    {neutral: "search", verb: "Searching the web for", arg: "query", harmless: true},
	"ToolSearch":   {neutral: "find_tool", verb: "Looking for a tool:", arg: "query", harmless: true},
	"TaskStop":     {neutral: "stop", verb: "Stopping task", arg: "task_id"},
	"TodoWrite":    {neutral: "plan", verb: "Planning:", arg: "todos", harmless: true},

	"AskUserQuestion": {neutral: "ask", verb: "Asking a question"},
	answerTool:        {neutral: "answer", verb: "Putting the answer into its form", harmless: true},

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

// Describe puts a tool call into words, such as "Reading agent/run.go": one line, without secrets. Paths are relative to dir.
func Describe(redactor *redact.Redactor, dir, name string, input json.RawMessage) string {
	t, ok := catalog[name]
	if !ok {
		return redact.Clip(redactor.OneLine("Using "+strings.ReplaceAll(strings.TrimPrefix(name, "mcp__"), "__", " ")), describeWidth)
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
	if v.Kind() != '[' {
		var s string
		if v.Kind() != '"' || experimental.Unmarshal(v, &s, lenient) != nil {
			return ""
		}
		return s
	}
	// A to-do list is about the item in progress, or the next one.
	var todos []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	}
	if experimental.Unmarshal(v, &todos, lenient) != nil {
		return ""
	}
	for _, status := range []string{"in_progress", "pending"} {
		for _, todo := range todos {
			if todo.Status == status {
				return todo.Content
			}
		}
	}
	return ""
}

// valueOf returns the value of an argument of a call; nil if the call lacks it. If it occurs several times the last one counts, as for the
// CLI. Other arguments are skipped without being copied: they may have megabytes.
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
