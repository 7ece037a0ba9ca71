package tools

import "strings"

// tool is what errand knows about a tool of the CLI, or about one of its own.
type tool struct {
	neutral string // its name in neutral naming
	verb    string // what people read that it does
	arg     string // the argument that tells on what
	files   bool   // it touches files, which pathsOf finds
	reads   bool   // and changes none
	args    names  // the arguments that are named differently in neutral naming
	list    string // an argument that is a list of objects, whose fields are named like arguments
}

// names are neutral names by the CLI's.
type names map[string]string

// catalog is all tools that are known, by the name the CLI gives them: those of the profiles, those it adds by itself, those of other
// versions, and errand's own. No neutral name is one of the CLI's, and none comes twice; the same is true of a tool's arguments.
var catalog = map[string]tool{
	"Agent": {neutral: "agent", verb: "Delegating:", arg: "description", args: names{"subagent_type": "type"}},
	"Task":  {neutral: "task", verb: "Delegating:", arg: "description", args: names{"subagent_type": "type"}},

	"Bash":  {neutral: "bash", verb: "Running", arg: "command", args: names{"timeout": "timeoutMs", "run_in_background": "background"}},
	"Skill": {neutral: "skill", verb: "Using skill", arg: "skill"},

	"Read": {
		neutral: "read", verb: "Reading", arg: "file_path", files: true, reads: true,
		args: names{"file_path": "path", "allow_large": "allowLarge"},
	},
	"Glob": {neutral: "find", verb: "Looking for", arg: "pattern", files: true, reads: true},
	"Grep": {
		neutral: "grep", verb: "Searching for", arg: "pattern", files: true, reads: true,
		args: names{
			"-A": "after", "-B": "before", "-C": "around", "-i": "ignoreCase", "-n": "lineNumbers", "-o": "onlyMatching",
			"head_limit": "limit", "output_mode": "output",
		},
	},

	"Write": {neutral: "write", verb: "Writing", arg: "file_path", files: true, args: names{"file_path": "path"}},
	"Edit": {
		neutral: "edit", verb: "Editing", arg: "file_path", files: true,
		args: names{"file_path": "path", "old_string": "oldText", "new_string": "newText", "replace_all": "replaceAll"},
	},
	"MultiEdit": {
		neutral: "multi_edit", verb: "Editing", arg: "file_path", files: true, list: "edits",
		args: names{"file_path": "path", "old_string": "oldText", "new_string": "newText", "replace_all": "replaceAll"},
	},
	"NotebookEdit": {
		neutral: "notebook_edit", verb: "Editing", arg: "notebook_path", files: true,
		args: names{"notebook_path": "path", "cell_id": "cell", "cell_type": "type", "edit_mode": "mode", "new_source": "newText"},
	},

	"WebFetch": {neutral: "fetch", verb: "Fetching", arg: "url"},
	"WebSearch": {
		neutral: "search", verb: "Searching the web for", arg: "query",
		args: names{"allowed_domains": "allowedDomains", "blocked_domains": "blockedDomains"},
	},
	"ToolSearch": {neutral: "find_tool", verb: "Looking for a tool:", arg: "query", args: names{"max_results": "limit"}},
	"TaskStop":   {neutral: "stop", verb: "Stopping task", arg: "task_id", args: names{"task_id": "task"}},

	"TodoWrite":       {neutral: "plan", verb: "Planning:", arg: "todos"},
	"AskUserQuestion": {neutral: "ask", verb: "Asking a question"},
	answerTool:        {neutral: "answer", verb: "Putting the answer into its form"},

	ownTools + "ask_user":    {neutral: "ask_user", verb: "Asking a question"},
	ownTools + "post_update": {neutral: "post_update", verb: "Posting an update"},
	ownTools + "read_thread": {neutral: "read_thread", verb: "Reading the thread"},
	ownTools + "attach_file": {neutral: "attach_file", verb: "Attaching", arg: "path"},
}

// known reports whether a tool is one that errand, or whoever set up an MCP server, has reckoned with.
func known(name string) bool {
	_, ok := catalog[name]
	return ok || strings.HasPrefix(name, "mcp__")
}

// harmless reports whether a tool only looks, or only speaks.
func (t tool) harmless() bool { return t.reads || looks[t.neutral] }

var looks = map[string]bool{
	"fetch": true, "search": true, "find_tool": true, "plan": true, "answer": true, "agent": true, "task": true,
	"ask_user": true, "post_update": true, "read_thread": true,
}
