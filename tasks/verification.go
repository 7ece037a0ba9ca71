package tasks

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// Verification holds the results of a repository's verification commands, which should succeed before work is
// published. The worker runs them itself on the work it is about to push: the agent is asked to run them too, but its
// word proves nothing.
type Verification struct {
	Ran     []Verified `json:"ran,omitempty"`
	Unrun   []string   `json:"unrun,omitempty"`   // the commands that were not run
	Problem string     `json:"problem,omitempty"` // a clause: why some were not run, or why the list could not be read
	Before  bool       `json:"before,omitempty"`  // nothing new was pushed, so the commands ran before
}

// Verified is the result of one verification command.
type Verified struct {
	Command  string        `json:"command"`
	Outcome  agent.Outcome `json:"outcome"`
	ExitCode int           `json:"exit_code"`
	Said     string        `json:"said,omitempty"` // the end of its output, if it failed
	Duration time.Duration `json:"duration"`
}

// Line summarizes the results in a few words; empty if there are none.
func (c *Verification) Line() string {
	if c == nil || c.Before {
		return ""
	}
	var said []string
	var failed []string
	for _, one := range c.Ran {
		if one.Outcome != agent.Done {
			failed = append(failed, one.Command)
		}
	}
	if len(failed) > 0 {
		said = append(said, fmt.Sprintf("%d of %d checks failed: %s", len(failed), len(c.Ran)+len(c.Unrun),
			strings.Join(failed, ", ")))
	} else if len(c.Ran) > 0 && len(c.Unrun) == 0 {
		said = append(said, "all checks succeeded")
	}
	switch {
	case c.Problem == "":
	case len(c.Ran) > 0 && len(c.Unrun) == 1:
		said = append(said, "1 was not run: "+c.Problem)
	case len(c.Ran) > 0:
		said = append(said, fmt.Sprintf("%d were not run: %s", len(c.Unrun), c.Problem))
	default:
		said = append(said, "the checks were not run: "+c.Problem)
	}
	return strings.Join(said, "; ")
}

const (
	maxVerification = 12_000 // bytes of Markdown; the first results are kept
	maxCommand      = 300    // characters of one command
)

// Markdown renders the results for the description of a pull request; empty if there are none.
func (c *Verification) Markdown() string {
	if c == nil {
		return ""
	}
	headline := c.Line()
	if c.Before {
		headline = "the checks were not run again: the work had been pushed before"
	}
	first, size := utf8.DecodeRuneInString(headline)
	headline = string(unicode.ToUpper(first)) + headline[size:]
	var b strings.Builder
	fmt.Fprintf(&b, "**%s.**\n", markdown.NeutralLine(untrusted.Line(headline, 1000)))
	var blocks []string
	for _, one := range c.Ran {
		block := fmt.Sprintf("\n%s %s.\n", untrusted.Code(one.Command, maxCommand), one.fate())
		if text := strings.TrimSpace(one.Said); text != "" {
			block += "\n" + markdown.Neutral(markdown.Fenced("", text)+"\n")
		}
		blocks = append(blocks, block)
	}
	for _, command := range c.Unrun {
		blocks = append(blocks, fmt.Sprintf("\n%s was not run.\n", untrusted.Code(command, maxCommand)))
	}
	left := maxVerification
	for _, block := range blocks {
		if left -= len(block); left < 0 {
			b.WriteString("\nThe rest is left out.\n")
			break
		}
		b.WriteString(block)
	}
	return b.String() + "\n---\n"
}

// fate says how a command ended and how long it took.
func (v Verified) fate() string {
	lasted := Lasted(v.Duration)
	switch {
	case v.Outcome == agent.Done:
		return "succeeded after " + lasted
	case v.Outcome == agent.Limit:
		return "was stopped after " + lasted + ", when the time for the checks was over"
	case v.ExitCode < 0:
		return "was killed by a signal after " + lasted
	}
	return fmt.Sprintf("failed with exit code %d after %s", v.ExitCode, lasted)
}
