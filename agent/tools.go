package agent

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/errand-fleet/errand/agent/internal/tools"
)

// Profile is what the agent of a run may do: Write, Read or Untrusted. The zero value is not valid: a caller decides.
type Profile = tools.Profile

// The profiles, from the widest to the narrowest.
const (
	Write     = tools.Write     // edits files and runs commands inside the run's directories
	Read      = tools.Read      // reads files, no commands, no network
	Untrusted = tools.Untrusted // as Read, for content that a stranger wrote
)

// ToolRequest is a tool call that has to be decided.
type ToolRequest = tools.Request

// Rule decides tool calls by the tool's name and by what the call is about. The first rule that fits decides. A rule can give Write more or
// less than the profile does, and Read and Untrusted only less.
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

// NewTool returns a Tool whose schema is that of the struct In: fields without omitempty are required, and a `jsonschema` tag describes its
// field. It panics if In has no schema, which is a mistake in the program.
func NewTool[In any](name, description string, run func(context.Context, In) (string, error)) Tool {
	return tools.New(name, description, run)
}

// MCPServer is a server of tools outside this process, which the CLI of each run starts or connects to. Its values may contain {{.Thread}},
// {{.Repo}}, {{.Run}} and, outside Args, {{env "NAME"}}.
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

// ServerSecrets returns the values of the environment that servers get, for NewRedactor. Variables that are not set are left out.
func ServerSecrets(servers []MCPServer, getenv func(string) string) []string {
	return tools.ServerSecrets(servers, getenv)
}

// policy returns the policy of a run.
func (r *Runner) policy(s Spec) tools.Policy {
	return tools.Policy{Profile: s.Profile, Dir: s.Dir, Roots: s.further(), Servers: r.servers(s), Rules: s.Rules}
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
	l.r.log.Error("host tool panicked", "run", l.spec.ID, "tool", tool, "err", fmt.Sprint(panicked), "stack", string(stack))
}
