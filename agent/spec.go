package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/pattern"
)

// Spec says what to run. Only ID, Dir, Prompt and Profile are required.
type Spec struct {
	ID      string  // names the log files and marks the run's processes; [a-z0-9.-], at most 80 bytes
	Dir     string  // directory of the agent: absolute, exists
	Folder  string  // the directory below Dir in which the agent starts; empty: Dir
	Files   string  // a further directory that the agent may use; empty: none
	Also    []Also  // further clones; of their configuration, only agents and skills count, with TrustedConfig
	Prompt  Message // the first user message, word for word
	System  string  // context, appended to the CLI's own system prompt
	Profile Profile
	Reads   []string // directories inside hidden ones that a sandbox shows, such as a mirror whose objects Dir uses

	Environment

	Rules []Rule // decide tool calls before the profile does; see Policy

	// Instructions are the operator's and those of the repositories that the run works in, in the order in which they
	// count. With any of a repository, the CLI looks for none by itself.
	Instructions []Instructions

	// TrustedConfig loads .claude settings, agents, commands, skills and .mcp.json from Dir, and without Instructions
	// CLAUDE.md and AGENTS.md too. These files decide what runs on the worker, so TrustedConfig has an effect only with
	// the Write profile.
	TrustedConfig bool

	Model   string          // alias or id; empty: the CLI's default
	Effort  string          // low, medium, high, …; empty: the CLI's default
	MaxUSD  float64         // maximum cost, enforced by the gateway, or without one by the CLI; 0: none
	Schema  json.RawMessage // JSON schema of the answer; nil: free text. An agent is reminded of it once
	Resume  *Session        // continues that conversation; nil: a new one
	History []Turn          // what was said before, if Resume is nil or cannot be resumed
	Limit   time.Duration   // wall time of the whole run; 0: none
	// IdleLimit is the maximum time without a sign of work, four times as long while a tool runs; 0: none. It does not
	// count while the agent waits for Host.Permit, or for the Run of a Rule or a Tool.
	IdleLimit time.Duration

	Tools        []Tool // of this process; allowed in every profile without asking
	Thread, Repo string // for the variables of Config.Servers; either may be empty
	Person       string // who asks, for Config.Credentials; may be empty

	// Checkpoint receives the conversation so far, every CheckpointEvery while the run lives, if the CLI has saved it.
	// There is one call at a time. ctx ends with the run, which then waits for the call to return. Nil or 0: not
	// called.
	Checkpoint      func(context.Context, Session)
	CheckpointEvery time.Duration

	Header []string // first lines of the log for people

	// Claimed says that the caller makes sure that no other process runs this ID. Otherwise the lock of the log does,
	// which a process that is stopped keeps, although its keeper has ended the run.
	Claimed bool

	inert  bool // nothing from Dir is executed: see Runner.Offer
	script bool // not a run of the CLI: see Runner.Script

	ownNetwork bool // see Runner.place
}

// Environment is what a run has besides its files. The zero value is that of a repository that declares nothing.
type Environment struct {
	// Env has variables for the agent's commands, in addition to those that the runner sets, which win. They are
	// visible to everything in the run. A leading ~/ of a value is the home of the run.
	Env map[string]string
	// Secrets has more such variables. A saved session does not contain their values. A run that shares the machine's
	// network does not get them.
	Secrets map[string]string
	// Path has directories that come first in PATH: absolute, relative to Dir, or below the home with a leading ~/.
	Path []string

	// Author is the name and the address under which the run's git commits, as in "bot <bot@example.com>"; empty:
	// "errand <errand@localhost>".
	Author string

	// Start has the lines of a script for bash that runs before the CLI, in at most 5 minutes. What it leaves running
	// lives as long as the run.
	Start []string

	// Layers are directories that the run shares with others without changing them. Without a sandbox they are copied.
	Layers []Layer
	// SeenAs is a further path at which a sandbox shows Dir, because files in Layers name it. It must be
	// below a hidden directory, and nothing need exist there.
	SeenAs string

	Egress Egress // the hosts that the run reaches
}

// Layer is a directory that a run may change although others use it too.
type Layer = sandbox.Layer

// Separated reports whether nothing of other runs is within reach of a run: it has a sandbox, or the container alone.
func (r *Runner) Separated() bool { return r.cfg.Sandbox == SandboxBwrap || r.cfg.Alone }

// Also is a further clone of a run. Without Dir it is a repository whose code may be in the run's clones.
type Also struct{ Repo, Dir string }

// exposed returns the secrets that a run gets. From the machine's network they could leave it for any host.
func (s Spec) exposed() map[string]string {
	if s.ownNetwork {
		return s.Secrets
	}
	return nil
}

// covered reports whether patterns of repositories cover each one whose code the run may execute.
func (s Spec) covered(patterns []string) bool {
	names := []string{s.Repo}
	for _, a := range s.Also {
		names = append(names, a.Repo)
	}
	return pattern.Covers(patterns, names...)
}

// start returns the directory in which the agent starts.
func (s Spec) start() string { return filepath.Join(s.Dir, s.Folder) }

// further returns the directories that the run may use in addition to Dir.
func (s Spec) further() []string {
	dirs := s.clones()
	if s.Files != "" {
		dirs = append(dirs, s.Files)
	}
	return dirs
}

// clones returns the directories of the further clones.
func (s Spec) clones() (dirs []string) {
	for _, a := range s.Also {
		if a.Dir != "" {
			dirs = append(dirs, a.Dir)
		}
	}
	return dirs
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

// Unattended is the host of a run without an audience: it permits nothing and sends no messages.
type Unattended struct{}

// Event does nothing.
func (Unattended) Event(Event) {}

// Permit denies the call.
func (Unattended) Permit(context.Context, ToolRequest) Decision { return Decision{} }

// Next returns false.
func (Unattended) Next(context.Context) (Message, bool) { return Message{}, false }

// Idle returns false.
func (Unattended) Idle(context.Context) (Message, bool) { return Message{}, false }

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
	ToolInput  = protocol.ToolInput  // Text is a piece of a call's JSON input while it is written; the first is empty
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
	Class  Class           `json:"class,omitempty"`  // of a Notice about a repeated model request, if known
	Parent string          `json:"parent,omitempty"` // tool use that started the sub-agent; empty for the main agent
	Agent  string          `json:"agent,omitempty"`  // kind of the sub-agent

	Usage   *Usage  `json:"usage,omitempty"`    // only of Used; shared, must not be changed
	CostUSD float64 `json:"cost_usd,omitempty"` // only of Used: as Result.CostUSD
}

// Profile is what the agent of a run may do: Write, Read or Untrusted. The zero value is not valid: a caller decides.
type Profile = tools.Profile

// The profiles, from the widest to the narrowest.
const (
	Write     = tools.Write     // edits files and runs commands inside the run's directories
	Read      = tools.Read      // reads files, no commands, no network
	Untrusted = tools.Untrusted // as Read, for content that a stranger wrote
)

// Form is a question of an MCP server to a person.
type Form = tools.Form

// ToolRequest is a tool call that has to be decided.
type ToolRequest = tools.Request

// Rule decides tool calls by the tool's name and by what the call is about. The first rule that fits decides. A rule
// can give Write more or less than the profile does, and Read and Untrusted only less.
type Rule = tools.Rule

// Action is what a Rule does with a call.
type Action = tools.Action

// The actions.
const (
	Allow    = tools.Allow
	Deny     = tools.Deny     // the agent gets the rule's reason
	Ask      = tools.Ask      // Host.Permit decides
	Delegate = tools.Delegate // the rule's Run makes the call, and the CLI does not
)

// Paths compiles a pattern of paths as in a Rule's Input: docs/** is docs and everything below it.
func Paths(pattern string) *regexp.Regexp { return tools.Paths(pattern) }

// Tool is a tool that the host offers to the agent of a run. NewTool makes one.
type Tool = tools.Tool

// NewTool returns a Tool whose schema is that of the struct In: fields without omitempty are required, and a
// `jsonschema` tag describes its field. It panics if In has no schema, which is a mistake in the program.
func NewTool[In any](name, description string, run func(context.Context, In) (string, error)) Tool {
	return tools.New(name, description, run)
}

// MCPServer is a server of tools outside this process, which the CLI of each run starts or connects to. Its values may
// contain {{.Thread}}, {{.Repo}}, {{.Run}} and, outside Args, {{env "NAME"}}.
type MCPServer = tools.MCPServer

// The values of MCPServer.Type.
const (
	ServerStdio = tools.ServerStdio
	ServerHTTP  = tools.ServerHTTP // streamable HTTP
	ServerSSE   = tools.ServerSSE  // its predecessor
)

// CheckServers returns everything that is wrong with servers. New refuses them then.
func CheckServers(servers []MCPServer, getenv func(string) string) []error {
	return tools.CheckServers(servers, getenv)
}

// ServerSecrets returns the values of the environment that servers get, for NewRedactor. Variables that are not set are
// left out.
func ServerSecrets(servers []MCPServer, getenv func(string) string) []string {
	return tools.ServerSecrets(servers, getenv)
}

// policy returns the policy of a run.
func (r *Runner) policy(s Spec) tools.Policy {
	return tools.Policy{
		Profile: s.Profile, Dir: s.Dir, Start: s.start(), Clones: s.clones(), Roots: s.further(), Servers: r.servers(s),
		Rules: s.Rules,
	}
}

// servers lists the servers whose tools a run may call: that of Spec.Tools, and those configured for its profile.
func (r *Runner) servers(s Spec) (names []string) {
	if len(s.Tools) > 0 {
		names = append(names, tools.ServerName)
	}
	for _, m := range r.cfg.Servers {
		if m.Serves(s.Profile) {
			names = append(names, m.Name)
		}
	}
	return names
}

// toolFailed logs that a tool has panicked.
func (l *liveRun) toolFailed(tool string, panicked any, stack []byte) {
	l.log.Note(time.Now(), "! the tool %s panicked: %v", tool, panicked)
	l.r.log.Error("host tool panicked", "run", l.spec.ID, "tool", tool, "err", fmt.Sprint(panicked),
		"stack", string(stack))
}
