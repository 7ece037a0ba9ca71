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
	Files   string  // a further directory that the agent may use; empty: none
	Prompt  Message // the first user message, word for word
	System  string  // context, appended to the CLI's own system prompt
	Profile Profile
	Reads   []string // directories that a sandbox shows although they are inside hidden ones, such as a repository from which Dir borrows objects

	Rules []Rule // decide tool calls before the profile does; see Policy

	// TrustedConfig loads .claude settings, CLAUDE.md, agents, commands and .mcp.json from Dir. These files decide what
	// runs on the worker, so TrustedConfig has an effect only with the Write profile.
	TrustedConfig bool

	Model   string          // alias or id; empty: the CLI's default
	Effort  string          // low, medium, high, …; empty: the CLI's default
	MaxUSD  float64         // maximum cost, after which the CLI stops and its gateway refuses further calls; 0: none
	Schema  json.RawMessage // JSON schema of the answer; nil: free text. An agent that does not follow it is reminded once
	Resume  *Session        // continues that conversation; nil: a new one
	History []Turn          // what was said before, if Resume is nil or cannot be resumed
	Limit   time.Duration   // wall time of the whole run; 0: none
	// IdleLimit is the maximum time without a sign of work, four times as long while a tool runs; 0: none. It does not
	// count while the agent waits for Host.Permit, or for the Run of a Rule or a Tool.
	IdleLimit time.Duration

	Tools        []Tool // of this process; allowed in every profile without asking
	Thread, Repo string // for the variables of Config.Servers; either may be empty

	// Checkpoint receives the conversation so far, every CheckpointEvery while the run lives, if the CLI has saved it.
	// There is one call at a time. ctx ends with the run, which then waits for the call to return. Nil or 0: not
	// called.
	Checkpoint      func(context.Context, Session)
	CheckpointEvery time.Duration

	Header []string // first lines of the log for people

	inert bool // nothing from Dir is executed: see Runner.Offer
}

// further returns the directories that the run may use in addition to Dir.
func (s Spec) further() []string {
	if s.Files == "" {
		return nil
	}
	return []string{s.Files}
}

// trusts reports whether the run loads the configuration in its directory.
func (s Spec) trusts() bool { return s.TrustedConfig && s.Profile == Write }

// Host is what a run needs from its caller. The package documentation says which goroutines call it.
type Host interface {
	// Event reports what the agent did. It must not block, because the CLI's output would not be read.
	Event(Event)
	// Permit decides about a tool call that a rule leaves to a person, or that is a question to a person. It is called
	// once per call and may take minutes, which do not count as silence. ctx ends if the CLI withdraws the call or the
	// run ends; the decision is then ignored.
	Permit(ctx context.Context, r ToolRequest) Decision
	// Next waits for a further message for the live run. It returns false if there will be none.
	Next(ctx context.Context) (Message, bool)
	// Idle is called each time the agent has nothing left to do. It returns a further message, or false, which ends the
	// session.
	Idle(ctx context.Context) (Message, bool)
}

// Decision answers a ToolRequest.
type Decision struct {
	Allow  bool
	Reason string          // for the agent if not allowed; empty: a general sentence
	Input  json.RawMessage // replaces the input of the call if allowed; nil: the original
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

// Event is one thing that happened in a run. It is redacted.
type Event struct {
	Time   time.Time       `json:"time"`
	Kind   Kind            `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Tool   string          `json:"tool,omitempty"`
	ToolID string          `json:"tool_id,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"`
	Error  bool            `json:"error,omitempty"`  // the tool or the turn failed
	Class  Class           `json:"class,omitempty"`  // of a Notice about a repeated request to the model: the reason, if known
	Parent string          `json:"parent,omitempty"` // tool use that started the sub-agent; empty for the main agent
	Agent  string          `json:"agent,omitempty"`  // kind of the sub-agent

	Usage   *Usage  `json:"usage,omitempty"`    // only of Used; shared, must not be changed
	CostUSD float64 `json:"cost_usd,omitempty"` // only of Used: as Result.CostUSD
}
