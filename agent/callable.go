package agent

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/go-json-experiment/json/jsontext"
)

// callable are the commands and agents of a session, as its CLI has listed them.
//
// The CLI expands much in what it takes for typed by a person: a /command that a message begins with, agents (@agent-name), and files
// (@path), which it reads at once: no hook, permission or rule sees that, and no log shows it. So every message is marked as one that nobody
// typed ("client_composed"), but for one that begins with a command of the list; and an agent is called in a block of its own,
// since of several blocks the CLI looks into the last one alone. Arguments of commands, those of skills that the model itself uses, and what is
// written in commands would still be searched for files: CLAUDE_CODE_DISABLE_FILE_MENTIONS in the CLI's environment ends that
// everywhere (all observed with 2.1.329).
type callable struct {
	commands, agents []string
}

// knownTo reads them from the CLI's answer to its greeting. A profile without the tool that starts agents has none.
func knownTo(answer jsontext.Value, p Profile) (n callable) {
	told, err := readGreeting(answer)
	if err != nil {
		return callable{} // then nothing is expanded
	}
	for _, c := range told.Commands {
		if !forTerminal(c.Name) {
			n.commands = append(append(n.commands, c.Name), c.Aliases...)
		}
	}
	for _, a := range told.Agents {
		if slices.Contains(tools.BuiltIn(p), "Agent") {
			n.agents = append(n.agents, a.Name)
		}
	}
	return n
}

// called is what a message calls by name: an agent, or else a command with which it begins.
func (n callable) called(m Message) (agent string, command bool) {
	switch {
	case m.Agent != "":
		return m.Agent, false
	case m.Composed:
		return "", false
	}
	if found := agentCall.FindStringSubmatch(m.Text); found != nil {
		agent = strings.TrimRight(strings.Join(found[1:], ""), ".:")
		if slices.Contains(n.agents, agent) {
			return agent, false
		}
	}
	return "", slices.Contains(n.commands, commandOf(m.Text))
}

// agentCall is an agent at the beginning of a text, in each form that the CLI knows, and as people write it: @name.
var agentCall = regexp.MustCompile(`^\s*@(?:agent-([\w:.@-]+)|"([\w:.@-]+) \(agent\)"|([\w:.@-]+))`)

// commandOf is the name of the command that a text begins with; empty if it begins with none.
func commandOf(text string) string {
	word, found := strings.CutPrefix(strings.TrimSpace(text), "/")
	if i := strings.IndexAny(word, " \n\t"); i >= 0 {
		word = word[:i]
	}
	if !found {
		return ""
	}
	return word
}

// check finds an agent that does not exist: the CLI would take its name for text.
func (n callable) check(m Message) error {
	switch {
	case m.Agent == "" || slices.Contains(n.agents, m.Agent):
		return nil
	case len(n.agents) == 0:
		return fmt.Errorf("there is no agent %q: what runs here can call none", m.Agent)
	}
	return fmt.Errorf("there is no agent %q here, only %s", m.Agent, strings.Join(n.agents, ", "))
}

// unfit is the cause for which a run ends whose prompt the CLI cannot take.
type unfit struct{ error }

func isUnfit(cause error) bool {
	_, is := errors.AsType[unfit](cause)
	return is
}

// QuoteName quotes the name of a file for a prompt. Nothing in it calls anything: a mention begins behind white space or one of these marks.
func QuoteName(name string) string {
	return beforeMention.ReplaceAllString(strconv.Quote(name), `${1}\u0040`)
}

var beforeMention = regexp.MustCompile(`([\s。、？！])@`)
