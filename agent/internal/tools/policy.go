// Package tools decides which tools an agent has and which calls of them are made, and serves the tools of the host.
//
// A [Policy] decides calls by the run's [Profile], its directories and its [Rule]s. A [Server] offers [Tool]s of this
// process to one CLI over its control protocol; an [MCPServer] is a server outside this process. [Describe] puts a call
// into words. The package starts no process and knows nothing of runs. Everything may be called from any number of
// goroutines.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Profile is what the agent of a run may do. The zero value is not valid: a caller decides.
type Profile string

// The profiles, from the widest to the narrowest.
const (
	Write     Profile = "write"     // edits files and runs commands inside the run's directories
	Read      Profile = "read"      // reads files, no commands, no network
	Untrusted Profile = "untrusted" // as Read, for content that a stranger wrote
)

// builtIn lists the CLI's tools per profile; it is started with these and no others. Left out on purpose: tools that
// start work later (cron, wake-ups, monitors), that talk to other sessions, or that ask a person at the terminal.
var builtIn = map[Profile][]string{
	Write: {
		"Agent", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "TaskStop", "ToolSearch", "WebFetch",
		"WebSearch", "Write",
	},
	Read:      {"Glob", "Grep", "Read", "Skill"},
	Untrusted: {"Glob", "Grep", "Read", "Skill"},
}

// BuiltIn returns the CLI's tools of a profile; nil if there is no such profile.
func BuiltIn(p Profile) []string { return builtIn[p] }

const (
	answerTool = "StructuredOutput"          // the agent answers a schema with it: always allowed
	ownTools   = "mcp__" + ServerName + "__" // prefix of the names of host tools
)

// Form is a question of an MCP server to a person.
type Form struct {
	Message string
	URL     string          // what the person should open instead of answering; empty: none
	Schema  json.RawMessage // of the answer: an object whose properties are no objects
	Fields  []string        // the names of the properties, in the server's order
}

// Request is a tool call that has to be decided.
type Request struct {
	ID      string // of the tool use
	Tool    string
	Input   json.RawMessage // as the agent wrote it, not redacted
	Text    string          // the call in words, as in an Event
	Blocked string          // the path that made the CLI ask, if it was one
	Human   bool            // the tool itself is a question to a person
	Reason  string          // why a person is asked: the rule's
	Form    *Form           // instead of a call: a question of the server Tool, answered by Decision.Input; nil: a call
}

// Action is what happens to a tool call.
type Action string

// The actions.
const (
	Allow    Action = "allow"
	Deny     Action = "deny"     // the agent gets the reason
	Ask      Action = "ask"      // the host decides
	Delegate Action = "delegate" // the host makes the call instead of the CLI
)

// Policy decides the tool calls of a run. It is the second barrier after the list of tools that the CLI gets. File
// tools are limited to the run's directories. A command of the Write profile is not inspected, because no list of words
// contains a shell: that is the task of the sandbox and of the image.
//
// The first rule that fits a call decides it, and the profile if no rule fits. Rules make Write narrower or wider, but
// Read and Untrusted only narrower: no rule gives back what a profile without commands refuses.
type Policy struct {
	Profile Profile
	Dir     string   // where the agent works, absolute
	Start   string   // the directory in Dir that paths of calls are relative to; empty: Dir
	Roots   []string // further directories that it may access, absolute
	Clones  []string // those of Roots that it works in as in Dir
	Texts   string   // a directory that it may only read, absolute; empty: none
	Servers []string // names of the MCP servers that its profile has
	Rules   []Rule
}

// Verdict is the decision of a Policy.
type Verdict struct {
	Action Action
	Reason string                                               // for the agent with Deny, for the person with Ask
	Run    func(ctx context.Context, r Request) (string, error) // set with Delegate
}

// Route decides a call. It looks at the file system, for links that lead elsewhere, and does not wait for people.
func (p Policy) Route(r Request) Verdict {
	if r.Tool == answerTool {
		return Verdict{Action: Allow}
	}
	v := p.byProfile(r)
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

// byProfile decides a call without rules.
func (p Policy) byProfile(r Request) Verdict {
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
		roots := p.roots()
		if t.reads && p.Texts != "" {
			roots = append(roots, p.Texts)
		}
		if slices.ContainsFunc(paths, func(path string) bool { return !p.within(path, roots) }) {
			roots := strings.Join(p.roots(), ", ")
			return Verdict{Action: Deny, Reason: "Only files below these directories may be accessed: " + roots}
		}
		return Verdict{Action: Allow}
	case p.Profile == Write, r.Tool == "Skill": // a skill is text
		return Verdict{Action: Allow}
	default:
		return Verdict{Action: Deny, Reason: "This run may only read files."}
	}
}

// Rule decides the tool calls it fits; see Policy for which of several rules does.
//
// A rule about commands is a guide and not a barrier: any command can be written in many ways. It is matched against
// the whole command as the agent wrote it: *git push* also finds the one after a cd.
type Rule struct {
	// Tool is the name of a tool, the CLI's or the neutral one, or a pattern of the CLI's names such as
	// mcp__tracker__*.
	Tool string
	// Input is a pattern of what a call is about: a path relative to the run's directory, or absolute outside of it; a
	// command, a URL, a query. A * matches any characters. In a path it stops at a slash, and ** does not: docs/** is
	// docs and everything below it. Empty: any call.
	//
	// A path is also matched with its links resolved and, in one of Policy.Clones, relative to that. An Allow has to
	// fit everything that a call is about, any other action some of it.
	Input  string
	Action Action
	Reason string // for the agent with Deny, for the person with Ask
	// Run makes the call instead of the CLI, with Delegate only. Its text is the call's result, and is redacted before
	// the agent sees it. It is called once per call, concurrently for calls that the agent makes at once, and may take
	// minutes. ctx ends when the CLI withdraws the call or the run ends; Run must then return, because the run waits
	// for it.
	Run func(ctx context.Context, r Request) (string, error)
}

// toolPattern matches names of tools and patterns of them.
var toolPattern = regexp.MustCompile(`^[A-Za-z0-9_.*-]+$`)

// Validate returns an error if the rule could never do what it says.
func (r Rule) Validate() error {
	name := canonical(r.Tool)
	_, known := catalog[name]
	open := strings.Contains(name, "*") || strings.HasPrefix(name, "mcp__") // not known before the run
	switch {
	case !toolPattern.MatchString(name):
		return fmt.Errorf("%q is not the name of a tool or a pattern of names", r.Tool)
	case !known && !open:
		return fmt.Errorf("unknown tool %q", r.Tool)
	case r.Input != "" && known && catalog[name].arg == "":
		return fmt.Errorf("calls of %s have no input that a pattern could match", r.Tool)
	case !slices.Contains([]Action{Allow, Deny, Ask, Delegate}, r.Action):
		return fmt.Errorf("unknown action %q", r.Action)
	case r.Action == Delegate && r.Run == nil:
		return errors.New("action delegate needs a function to run")
	case r.Action != Delegate && r.Run != nil:
		return fmt.Errorf("action %s does not run a function", r.Action)
	}
	return nil
}

// canonical returns the CLI's name of a tool, which a rule may also call by its neutral name. The tool of sub-agents
// has two names: the init message calls it Task, calls name it Agent (CLI 2.1.329).
func canonical(tool string) string {
	if _, ok := catalog[tool]; !ok {
		for name, t := range catalog {
			if t.neutral == tool {
				tool = name
				break
			}
		}
	}
	if tool == "Task" {
		return "Agent"
	}
	return tool
}

// fits reports whether a rule applies to a call.
func (p Policy) fits(rule Rule, r Request) bool {
	if !glob(canonical(rule.Tool), false).MatchString(canonical(r.Tool)) {
		return false
	}
	if rule.Input == "" {
		return true
	}
	subjects, paths := p.subjects(r)
	pattern := glob(rule.Input, paths)
	if rule.Action == Allow {
		return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s string) bool {
			return !pattern.MatchString(s)
		})
	}
	return slices.ContainsFunc(subjects, pattern.MatchString)
}

// Paths compiles a pattern of paths as in Rule.Input.
func Paths(pattern string) *regexp.Regexp { return glob(pattern, true) }

// glob compiles a pattern. In a path, ** together with its slash also matches no directory: a/**/b matches a/b.
func glob(pattern string, path bool) *regexp.Regexp {
	pattern = strings.ToValidUTF8(pattern, "\uFFFD")
	star, head, tail := ".*", "", ""
	if path {
		star = "[^/]*"
		pattern = strings.TrimPrefix(pattern, "./")
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		var found bool
		if pattern, found = strings.CutPrefix(pattern, "**/"); found {
			head = "(?:.*/)?"
		}
		if pattern, found = strings.CutSuffix(pattern, "/**"); found {
			tail = "(?:/.*)?"
		}
	}
	body := strings.NewReplacer(`/\*\*/`, `/(?:.*/)?`, `\*\*`, `.*`, `\*`, star).Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`(?s)^` + head + body + tail + `$`)
}
