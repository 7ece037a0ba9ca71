package agent

import (
	"context"
	"encoding/json"
	"time"
)

// Profile is what the agent of a run may do. The zero value is not valid: a caller decides.
type Profile string

// The profiles, from the widest to the narrowest.
const (
	Write     Profile = "write"     // edits files and runs commands inside the run's directories
	Read      Profile = "read"      // reads files, no commands, no network
	Untrusted Profile = "untrusted" // as Read, for content a stranger wrote
)

// Spec says what to run. Only ID, Dir, Prompt and Profile are required.
type Spec struct {
	ID      string  // names the log files and marks the run's processes; [a-z0-9.-], at most 80 bytes
	Dir     string  // working directory of the agent: absolute, exists
	Files   string  // a further directory it may use; empty for none
	Prompt  Message // the first user message, word for word
	System  string  // context, appended to the CLI's own system prompt
	Profile Profile
	Reads   []string // in a sandbox: directories that must be seen though they lie in a hidden one, as what Dir borrows objects from

	// TrustedConfig loads the directory's own .claude settings, CLAUDE.md, agents, commands and .mcp.json. Whoever can write
	// those files decides what runs on the worker, so it is honoured for the Write profile only.
	TrustedConfig bool

	Model     string          // alias or id; empty: the CLI's default
	Effort    string          // low, medium, high, …; empty: the CLI's default
	MaxUSD    float64         // spend at which the CLI stops by itself; 0: none
	Schema    json.RawMessage // JSON schema of the answer; nil: free text
	Resume    *Session        // continues that conversation; nil: a new one
	Limit     time.Duration   // wall time of the whole run; 0: none
	IdleLimit time.Duration   // time without any sign of work, four times as much while a tool runs; 0: none

	Header []string // lines for the top of the log meant for people
}

// Message is one thing a person said.
type Message struct {
	ID   string // UUID, echoed by the CLI in its lifecycle lines; empty: one is made
	Text string
	// Composed marks text that was put together from outside sources: the CLI then does not look for /commands and
	// @files in it.
	Composed bool
}

// Session is a conversation as the CLI saves it.
type Session struct {
	ID   string `json:"id"` // UUID
	Data []byte `json:"-"`  // the session file; empty when the CLI saved none
	// What the conversation has used up in all. The CLI counts on from here when it resumes, so a run's own share is the
	// difference.
	CostUSD float64 `json:"cost_usd"`
	Usage   Usage   `json:"usage"`
}

// Host is what a run needs from whoever started it. See the package documentation for its goroutines.
type Host interface {
	// Event tells what the agent did. It must not block: the CLI waits for nobody.
	Event(Event)
	// Permit decides over a tool call the CLI asks about. It may take minutes; ctx ends when the CLI withdraws its question
	// or the run ends, and the decision is then ignored.
	Permit(ctx context.Context, r ToolRequest) Decision
	// Next waits for a further message for the live run; false means that there will be none.
	Next(ctx context.Context) (Message, bool)
	// Idle is asked each time the agent has nothing left to do: one more message, or false, which ends the session.
	Idle(ctx context.Context) (Message, bool)
}

// ToolRequest is a tool call that the CLI wants decided.
type ToolRequest struct {
	ID      string // of the tool use
	Tool    string
	Input   json.RawMessage
	Blocked string // the path that made the CLI ask, when it was one
	Human   bool   // the tool itself is a question to a person
}

// Decision answers a ToolRequest.
type Decision struct {
	Allow  bool
	Reason string          // told to the agent when not allowed; empty: a general sentence
	Input  json.RawMessage // replaces the call's input when allowed; nil: as asked
}

// Kind tells what an Event is about.
type Kind string

// The kinds of events.
const (
	Started    Kind = "started"     // the CLI works: Text is the model
	Text       Kind = "text"        // Text is a piece of the answer
	Thinking   Kind = "thinking"    // Text is a piece of the agent's reasoning
	ToolUse    Kind = "tool_use"    // the agent calls Tool with Input; Text says so in words
	ToolResult Kind = "tool_result" // the call with ToolID came back; Text is the beginning of its output
	Notice     Kind = "notice"      // Text is something a reader of the run should know
	TurnEnd    Kind = "turn_end"    // a turn is over; Text is its answer
)

// Event is one thing that happened in a run, already redacted.
type Event struct {
	Time   time.Time       `json:"time"`
	Kind   Kind            `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	ToolID string          `json:"tool_id,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Error  bool            `json:"error,omitempty"`  // the tool or the turn failed
	Parent string          `json:"parent,omitempty"` // tool use of the sub-agent that did it; empty for the main agent
}
