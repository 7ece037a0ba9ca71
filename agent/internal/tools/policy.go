package tools

import (
	"context"
	"slices"
	"strings"
)

// tools are the CLI's built-in tools per profile; it is started with these and no others. Left out on purpose: what starts work
// later (cron, wake-ups, monitors), what talks to other sessions, and what asks a person at the terminal.
var tools = map[Profile][]string{
	Write:     {"Agent", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Write"},
	Read:      {"Glob", "Grep", "Read"},
	Untrusted: {"Glob", "Grep", "Read"},
}

const (
	answerTool = "StructuredOutput"          // how the agent answers a Spec.Schema: no tool that anybody could mind
	ownTools   = "mcp__" + hostServer + "__" // how the names of Spec.Tools begin
)

// Action is what becomes of a tool call.
type Action string

// The actions.
const (
	Allow    Action = "allow"
	Deny     Action = "deny"     // the agent is told why
	Ask      Action = "ask"      // Host.Permit decides
	Delegate Action = "delegate" // the host does the call, and the CLI does not
)

// Policy decides the tool calls of a run: the second wall behind the list of tools the CLI gets. Files are held to its directories. A command
// of the Write profile is not looked into, since no list of words contains a shell: containment is the sandbox's and the image's work.
//
// The first rule that fits a call decides it, and the profile does where none fits. Rules make Write narrower or wider, but Read and
// Untrusted only narrower: what a profile without commands refuses, no rule gives back.
type Policy struct {
	Profile Profile
	Dir     string   // where the agent works, absolute
	Roots   []string // further directories it may touch, absolute
	Servers []string // MCP servers whose tools it was given for this profile, by name
	Rules   []Rule
}

// policy is that of a run.
func (r *Runner) policy(s Spec) Policy {
	return Policy{Profile: s.Profile, Dir: s.Dir, Roots: s.further(), Servers: r.servers(s), Rules: s.Rules}
}

// Verdict is what a Policy says to a call.
type Verdict struct {
	Action Action
	Reason string                                                   // told to the agent with Deny, to the person with Ask
	Run    func(ctx context.Context, r ToolRequest) (string, error) // set with Delegate
}

// Route decides a call. It looks at the file system, for links that lead elsewhere, and waits for nobody.
func (p Policy) Route(r ToolRequest) Verdict {
	if r.Tool == answerTool {
		return Verdict{Action: Allow}
	}
	v := p.own(r)
	if v.Action == Deny && p.Profile != Write {
		return v
	}
	for _, rule := range p.Rules {
		if r.Human && rule.Action == Allow {
			continue // allowing a question does not answer it
		}
		if p.fits(rule, r) {
			return Verdict{Action: rule.Action, Reason: rule.Reason, Run: rule.Run}
		}
	}
	return v
}

// own is what the profile says by itself.
func (p Policy) own(r ToolRequest) Verdict {
	t := catalog[r.Tool]
	switch {
	case r.Human:
		return Verdict{Action: Ask}
	case slices.Contains(p.Servers, serverOf(r.Tool)):
		return Verdict{Action: Allow}
	case t.files && (t.reads || p.Profile == Write):
		paths, err := pathsOf(r)
		if err != nil {
			return Verdict{Action: Deny, Reason: "This call cannot be understood: " + err.Error()}
		}
		if slices.ContainsFunc(paths, func(path string) bool { return !p.inside(path) }) {
			return Verdict{Action: Deny, Reason: "Only files below these directories may be touched: " + strings.Join(p.roots(), ", ")}
		}
		return Verdict{Action: Allow}
	case p.Profile == Write:
		return Verdict{Action: Allow}
	default:
		return Verdict{Action: Deny, Reason: "This run may only read files."}
	}
}
