package github

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A comment may be a command: its first line is one of these words and nothing else. What stands below is told to the agent.
const (
	sayReview     = "/review"
	sayReviewFull = "/review full"
	sayFix        = "/fix"
	sayFixCI      = "/fix-ci"
	sayResolve    = "/resolve-conflicts"
	sayAnalyze    = "/analyze"
	sayAsk        = "/ask"     // with a question behind it
	sayDismiss    = "/dismiss" // with the ID of a finding behind it
	sayPause      = "/pause"
	sayResume     = "/resume"
	sayCancel     = "/cancel"
	sayRetry      = "/retry"
	sayHelp       = "/help"
	sayAnswer     = "/answer" // with the answer behind it
	sayApprove    = "/approve"
	sayAlways     = "/approve always"
	sayDeny       = "/deny" // perhaps with a reason behind it
)

// help is what can be said to us.
const help = `Mention me with what you want done, in a comment, on a line of the diff or in a review; I answer there. Or begin a comment with one of these lines:

| | |
|---|---|
| ` + "`/review`" + ` | review what is new since my last review |
| ` + "`/review full`" + ` | review all of it |
| ` + "`/fix`" + ` | do what the open reviews and comments ask for; what you write below it counts most |
| ` + "`/fix-ci`" + ` | mend what fails in the checks |
| ` + "`/resolve-conflicts`" + ` | merge the base branch and resolve the conflicts |
| ` + "`/analyze`" + ` | report on the state of this pull request, and change nothing |
| ` + "`/ask …`" + ` | answer a question, and change nothing |
| ` + "`/dismiss …`" + ` | never bring up that finding again |
| ` + "`/pause`" + `, ` + "`/resume`" + ` | do nothing here by myself; do so again |
| ` + "`/cancel`" + ` | stop what I am doing here |
| ` + "`/answer …`" + `, ` + "`/approve`" + `, ` + "`/deny …`" + ` | answer what I have asked |
| ` + "`/retry`" + ` | try again what went wrong last |
| ` + "`/help`" + ` | this list |`

// work is what the agent is to do.
type work struct {
	kind    string
	profile agent.Profile // at most
	apart   bool          // in the thread of automatic analyses, and not in the conversation
	full    bool
}

// orders are the commands that take an agent.
var orders = map[string]work{
	sayReview:     {kind: "review", profile: agent.Read, apart: true},
	sayReviewFull: {kind: "review", profile: agent.Read, apart: true, full: true},
	sayAnalyze:    {kind: "analyze", profile: agent.Read, apart: true},
	sayFix:        {kind: "fix", profile: agent.Write},
	sayFixCI:      {kind: "check_failure", profile: agent.Write},
	sayResolve:    {kind: "merge_conflict", profile: agent.Write},
	sayAsk:        {kind: "comment", profile: agent.Read},
}

// mentioned is what a mention asks for that is no command.
var mentioned = work{kind: "comment", profile: agent.Write}

// slash is what looks like a command, of whomever.
var slash = regexp.MustCompile(`^/[a-z][a-z-]*(?:\s|$)`)

// added is what somebody has written below a command, for the prompt; empty where there is nothing.
func (o origin) added(t tasks.Task) string {
	if o.Asked == nil || o.Asked.Command == "" || o.Asked.Words == "" {
		return ""
	}
	return fmt.Sprintf("\n\n@%s adds, and this counts most:\n\n%s", t.Actor, o.Asked.Words)
}

// readCommand reads a comment without mentions of us: the command, empty if it begins with none of ours, and what else is said.
func readCommand(text string) (command, words string) {
	first, below, _ := strings.Cut(text, "\n")
	first, below = strings.TrimSpace(first), strings.TrimSpace(below)
	for _, word := range []string{sayAsk, sayAnswer, sayDeny, sayDismiss} {
		if rest, ok := strings.CutPrefix(first, word+" "); ok {
			first, below = word, strings.TrimSpace(rest+"\n"+below)
		}
	}
	if _, ok := orders[first]; ok {
		return first, below
	}
	if _, ok := controls[first]; ok || replies[first] {
		return first, below
	}
	return "", text
}
