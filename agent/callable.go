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

// callable lists the commands and agents of a session that a message can call by name, as reported by its CLI.
//
// In text that a person typed, the CLI expands a /command at the beginning, agents (@agent-name), and files (@path), which it reads at once:
// no hook, permission or rule sees that, and no log shows it. So every message is marked as not typed ("client_composed"), except one that
// begins with a command of the list; and an agent is called in a separate block, because the CLI expands only the last block. The CLI would
// still search arguments of commands, those of skills that the model uses, and the text of commands for files:
// CLAUDE_CODE_DISABLE_FILE_MENTIONS in its environment turns that off everywhere (all observed with 2.1.329).
type callable struct {
	commands, agents []string
}

// readCallable reads them from the CLI's answer to the initialize request. A profile without the tool that starts agents has no agents.
func readCallable(answer jsontext.Value, p Profile) (n callable) {
	told, err := readGreeting(answer)
	if err != nil {
		return callable{} // nothing is expanded then
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

// called returns what a message calls by name: an agent, or a command at its beginning.
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

// agentCall matches an agent at the beginning of a text, in each form that the CLI knows and as people write it: @name.
var agentCall = regexp.MustCompile(`^\s*@(?:agent-([\w:.@-]+)|"([\w:.@-]+) \(agent\)"|([\w:.@-]+))`)

// commandOf returns the name of the command at the beginning of a text; empty if there is none.
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

// check returns an error for an agent that does not exist: the CLI would treat its name as text.
func (n callable) check(m Message) error {
	switch {
	case m.Agent == "" || slices.Contains(n.agents, m.Agent):
		return nil
	case len(n.agents) == 0:
		return fmt.Errorf("unknown agent %q: this run cannot call agents", m.Agent)
	}
	return fmt.Errorf("unknown agent %q, available: %s", m.Agent, strings.Join(n.agents, ", "))
}

// unfit is the cause that ends a run whose prompt the CLI cannot accept.
type unfit struct{ error }

func isUnfit(cause error) bool {
	_, is := errors.AsType[unfit](cause)
	return is
}

// QuoteName quotes the name of a file for a prompt. It escapes @ after white space and the marks after which the CLI would see a mention.
func QuoteName(name string) string {
	return beforeMention.ReplaceAllString(strconv.Quote(name), `${1}\u0040`)
}

var beforeMention = regexp.MustCompile(`([\s。、？！])@`)
