package github

import (
	"cmp"
	"context"
	"fmt"
	"strings"
)

func showHelp(_ *interpreter, _ context.Context, h remarkEvent) (string, bool, error) {
	return help(h), true, nil
}

// help lists the commands as Markdown.
func help(h remarkEvent) string {
	var b strings.Builder
	where := "in a comment, on a line of the diff or in a review"
	if h.OnIssue {
		where = "in an issue or a comment"
	}
	b.WriteString("To give me a task, mention me " +
		where + "; I answer there. Or begin a comment with one of these commands:\n\n| | |\n|---|---|")
	for _, c := range commands() {
		label := "`" + c.word + "`"
		if c.argument {
			label = "`" + c.word + " …`"
		}
		if c.help != "" && !c.unavailableFor(h) {
			fmt.Fprintf(&b, "\n| %s | %s |", cmp.Or(c.label, label), c.help)
		}
	}
	return b.String()
}
