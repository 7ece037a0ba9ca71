package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// describeWidth is how many characters of an action people are shown: a line of a status message.
const describeWidth = 80

// verbs says what a tool does, and which of its arguments tells on what.
var verbs = map[string]struct{ verb, arg string }{
	"Read":         {"Reading", "file_path"},
	"Write":        {"Writing", "file_path"},
	"Edit":         {"Editing", "file_path"},
	"NotebookEdit": {"Editing", "notebook_path"},
	"Bash":         {"Running", "command"},
	"Glob":         {"Looking for", "pattern"},
	"Grep":         {"Searching for", "pattern"},
	"WebFetch":     {"Fetching", "url"},
	"WebSearch":    {"Searching the web for", "query"},
	"Task":         {"Delegating:", "description"},
	"Agent":        {"Delegating:", "description"}, // the same tool: init calls it Task, the wire Agent
	"Skill":        {"Using skill", "skill"},
}

// describe puts a tool call into words without secrets, such as "Reading agent/run.go". Paths are relative to the run's directory.
func describe(r *Redactor, dir, tool string, input json.RawMessage) string {
	v, ok := verbs[tool]
	if !ok {
		return "Using " + strings.ReplaceAll(strings.TrimPrefix(tool, "mcp__"), "__", " ")
	}
	var args map[string]any
	_ = json.Unmarshal(input, &args) // without arguments the verb alone is told
	what, _ := args[v.arg].(string)
	if rel, err := filepath.Rel(dir, what); strings.HasSuffix(v.arg, "_path") && err == nil && filepath.IsLocal(rel) {
		what = rel
	}
	return r.head([]byte(v.verb+" "+strings.Join(strings.Fields(what), " ")), describeWidth)
}

// clip shortens s to at most n characters. It looks no farther than that.
func clip(s string, n int) string {
	end := 0
	for i := range s {
		switch n--; n {
		case 0:
			end = i
		case -1:
			return s[:end] + "…"
		}
	}
	return s
}
