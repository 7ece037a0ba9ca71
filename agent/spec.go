package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
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

	Rules []Rule // decide tool calls before the profile does; see Policy

	// TrustedConfig loads the directory's own .claude settings, CLAUDE.md, agents, commands and .mcp.json. Whoever can write
	// those files decides what runs on the worker, so it is honoured for the Write profile only.
	TrustedConfig bool

	Model   string          // alias or id; empty: the CLI's default
	Effort  string          // low, medium, high, …; empty: the CLI's default
	MaxUSD  float64         // spend at which the CLI stops by itself, and its gateway asks the model no more; 0: none
	Schema  json.RawMessage // JSON schema of the answer; nil: free text. An agent that does not follow it is reminded once
	Resume  *Session        // continues that conversation; nil: a new one
	History []Turn          // what had been said, in place of a conversation that cannot be resumed or never was one of the CLI's
	Limit   time.Duration   // wall time of the whole run; 0: none
	// IdleLimit is the time without any sign of work, four times as much while a tool runs; 0: none. It stands still while the
	// agent waits for Host.Permit, for a Rule's Run or for a Tool's.
	IdleLimit time.Duration

	Tools        []Tool // of this process, for the agent; allowed in every profile without asking
	Thread, Repo string // what the run is about, for Config.Servers; either may be empty

	// Checkpoint is handed the conversation as it is so far, every CheckpointEvery while the run lives, if the CLI has saved any. It
	// is called on a goroutine of its own, never twice at once; its ctx ends with the run, which then waits for it to return.
	// Nil or 0: not called.
	Checkpoint      func(context.Context, Session)
	CheckpointEvery time.Duration

	Header []string // lines for the top of the log meant for people

	inert bool // nothing of the directory's own is run: see Runner.Offer
}

// further are the directories that the run may use besides Dir.
func (s Spec) further() []string {
	if s.Files == "" {
		return nil
	}
	return []string{s.Files}
}

// trusts reports whether the run loads what its directory brings along.
func (s Spec) trusts() bool { return s.TrustedConfig && s.Profile == Write }

// Host is what a run needs from whoever started it. See the package documentation for its goroutines.
type Host interface {
	// Event tells what the agent did. It must not block: the CLI waits for nobody.
	Event(Event)
	// Permit decides over a tool call that a rule leaves to a person, or that is a question to a person. It is called once per
	// call, and may take minutes: that is not silence. ctx ends when the CLI withdraws its question or the run ends, and the
	// decision is then ignored.
	Permit(ctx context.Context, r ToolRequest) Decision
	// Next waits for a further message for the live run; false means that there will be none.
	Next(ctx context.Context) (Message, bool)
	// Idle is asked each time the agent has nothing left to do: one more message, or false, which ends the session.
	Idle(ctx context.Context) (Message, bool)
}

// Decision answers a ToolRequest.
type Decision struct {
	Allow  bool
	Reason string          // told to the agent when not allowed; empty: a general sentence
	Input  json.RawMessage // replaces the call's input when allowed; nil: as asked
}

// Kind says what an Event is about.
type Kind = protocol.Kind

// The kinds of events.
const (
	Started    = protocol.Started    // the CLI works: Text is the model
	Taken      = protocol.Taken      // the agent has taken the message whose ID is Text
	Text       = protocol.Text       // Text is a piece of the answer
	Thinking   = protocol.Thinking   // Text is a piece of the agent's reasoning
	ToolInput  = protocol.ToolInput  // Text is a piece of the JSON input of a call of Tool that the agent is writing; the first is empty
	ToolUse    = protocol.ToolUse    // the agent calls Tool with Input; Text describes the call
	ToolResult = protocol.ToolResult // the call with ToolID returned; Text is the beginning of its output
	Notice     = protocol.Notice     // Text is something that a reader of the run should know
	TurnEnd    = protocol.TurnEnd    // a turn is over; Text is its answer

	Used Kind = "used" // Usage and CostUSD are what the run has used so far
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
	Class  Class           `json:"class,omitempty"`  // of a Notice that the CLI repeats a request to the model: why, if that is known
	Parent string          `json:"parent,omitempty"` // tool use of the sub-agent that did it; empty for the main agent
	Agent  string          `json:"agent,omitempty"`  // what kind of sub-agent it is

	Usage   *Usage  `json:"usage,omitempty"`    // of Used alone; shared, not to be changed
	CostUSD float64 `json:"cost_usd,omitempty"` // of Used alone: as Result.CostUSD
}
