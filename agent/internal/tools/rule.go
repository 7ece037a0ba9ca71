package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule decides the tool calls it fits; see Policy for which of several rules does.
//
// A rule about commands is a guide and not a barrier: any command can be written in many ways. It is matched against the whole command as
// the agent wrote it: *git push* also finds the one after a cd.
type Rule struct {
	// Tool is the name of a tool, the CLI's or the neutral one, or a pattern of the CLI's names such as mcp__tracker__*.
	Tool string
	// Input is a pattern of what a call is about: a path relative to the run's directory, or absolute outside of it; a command, a URL,
	// a query. A * matches any characters. In a path it stops at a slash, and ** does not: docs/** is docs and everything below it.
	// Empty: any call.
	//
	// A path is also matched with its links resolved. An Allow has to fit everything that a call is about, any other action some of it.
	Input  string
	Action Action
	Reason string // for the agent with Deny, for the person with Ask
	// Run makes the call instead of the CLI, with Delegate only. Its text is the call's result, and is redacted before the agent sees
	// it. It is called once per call, concurrently for calls that the agent makes at once, and may take minutes. ctx ends when the CLI
	// withdraws the call or the run ends; Run must then return, because the run waits for it.
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

// canonical returns the CLI's name of a tool, which a rule may also call by its neutral name. The tool of sub-agents has two names: the
// init message calls it Task, calls name it Agent (CLI 2.1.329).
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
		return len(subjects) > 0 && !slices.ContainsFunc(subjects, func(s string) bool { return !pattern.MatchString(s) })
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
