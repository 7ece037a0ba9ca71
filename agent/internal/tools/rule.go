package tools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rule decides the tool calls it fits; see Policy for which of several does.
//
// A rule about commands is a signpost and no wall: there are a hundred ways to write a command, and a shell in each of them. It is held
// against the command as the agent wrote it, all of it: *git push* also finds the one behind a cd.
type Rule struct {
	// Tool is the name of a tool, the CLI's or the neutral one, or a pattern of the CLI's names such as mcp__tracker__*.
	Tool string
	// Input is a pattern of what a call is about: a path relative to the run's directory, or absolute outside of it; a command, a URL,
	// a query. A * stands for any characters. In a path it stops at a slash, and ** does not: docs/** is docs and all below it.
	// Empty: whatever the call is about.
	//
	// A path is also looked at with its links resolved. An Allow has to fit all that a call is about, any other action only some of it.
	Input  string
	Action Action
	Reason string // told to the agent with Deny, to the person with Ask
	// Run does the call instead of the CLI, for Delegate alone. What it returns is the call's result, and is redacted before the agent
	// sees it. It is called once per call, several at once for calls that the agent makes at once, and may take minutes. ctx ends when
	// the CLI withdraws the call or the run ends; Run must then return, because the run waits for it.
	Run func(ctx context.Context, r ToolRequest) (string, error)
}

// toolPattern is what names of tools are made of, and the asterisk.
var toolPattern = regexp.MustCompile(`^[A-Za-z0-9_.*-]+$`)

// Validate finds what would keep a rule from ever doing what it says.
func (r Rule) Validate() error {
	name := canonical(r.Tool)
	_, known := catalog[name]
	open := strings.Contains(name, "*") || strings.HasPrefix(name, "mcp__") // what it will fit is not known before the run
	switch {
	case !toolPattern.MatchString(name):
		return fmt.Errorf("%q is not the name of a tool, nor a pattern of names", r.Tool)
	case !known && !open:
		return fmt.Errorf("there is no tool %q", r.Tool)
	case r.Input != "" && known && catalog[name].arg == "":
		return fmt.Errorf("a call of %s has nothing that an input pattern could fit", r.Tool)
	case !slices.Contains([]Action{Allow, Deny, Ask, Delegate}, r.Action):
		return fmt.Errorf("%q is no action", r.Action)
	case r.Action == Delegate && r.Run == nil:
		return errors.New("there is nobody to delegate to")
	case r.Action != Delegate && r.Run != nil:
		return fmt.Errorf("action %s does not run anything", r.Action)
	}
	return nil
}

// canonical is the CLI's name of a tool, which a rule may also call by its neutral name. The sub-agents' tool has two names: init calls
// it Task, the wire Agent (claude-cli.md §3).
func canonical(tool string) string {
	if _, ok := catalog[tool]; !ok {
		tool, _ = FromNeutral(tool, nil)
	}
	if tool == "Task" {
		return "Agent"
	}
	return tool
}

// fits reports whether a rule is about a call.
func (p Policy) fits(rule Rule, r ToolRequest) bool {
	if !glob(canonical(rule.Tool), false).MatchString(canonical(r.Tool)) {
		return false
	}
	if rule.Input == "" {
		return true
	}
	about, paths := p.about(r)
	pattern := glob(rule.Input, paths)
	if rule.Action == Allow {
		return len(about) > 0 && !slices.ContainsFunc(about, func(s string) bool { return !pattern.MatchString(s) })
	}
	return slices.ContainsFunc(about, pattern.MatchString)
}

// Paths compiles a pattern of paths as Rule.Input has it, for others who let people name files the same way.
func Paths(pattern string) *regexp.Regexp { return glob(pattern, true) }

// glob compiles a pattern. In a path, ** together with its slash may also stand for no directory at all: a/**/b fits a/b.
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
