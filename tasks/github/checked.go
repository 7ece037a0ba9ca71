package github

import (
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// maxChecked is how much of a description the checks may take, in bytes: so much that what failed first is there.
const maxChecked = 12_000

// checked tells at the top of a pull request what its checks came to, in the worker's words; empty where there are none.
func checked(c *tasks.Checks) string {
	if c == nil {
		return ""
	}
	headline := c.Line()
	if c.Before {
		headline = "the checks were not run again: the work had been pushed before"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**%s.**\n", markdown.NeutralLine(line(capital(headline), 1000)))
	var all []string
	for _, one := range c.Ran {
		said := fmt.Sprintf("\n%s %s.\n", code(one.Command), fate(one))
		if text := strings.TrimSpace(one.Said); text != "" {
			said += "\n" + markdown.Neutral(markdown.Fenced("", text)+"\n")
		}
		all = append(all, said)
	}
	for _, command := range c.Unrun {
		all = append(all, fmt.Sprintf("\n%s was not run.\n", code(command)))
	}
	left := maxChecked
	for _, said := range all {
		if left -= len(said); left < 0 {
			b.WriteString("\nThere is more of this than has room here.\n")
			break
		}
		b.WriteString(said)
	}
	return b.String() + "\n---\n"
}

// fate is what became of a check, and how long it took.
func fate(c tasks.Checked) string {
	lasted := tasks.Lasted(c.Duration)
	switch {
	case c.Outcome == agent.Done:
		return "succeeded after " + lasted
	case c.Outcome == agent.Limit:
		return "was stopped after " + lasted + ", when the time for the checks was over"
	case c.ExitCode < 0:
		return "was killed by a signal after " + lasted
	}
	return fmt.Sprintf("failed with exit code %d after %s", c.ExitCode, lasted)
}
