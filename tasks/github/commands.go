package github

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A comment is a command if its first line is one of these words. The text below it is given to the agent.
const (
	sayReview     = "/review"
	sayReviewFull = "/review full"
	sayFix        = "/fix"
	sayFixCI      = "/fix-ci"
	sayResolve    = "/resolve-conflicts"
	sayAnalyze    = "/analyze"
	sayPlan       = "/plan"    // optionally followed by what to heed
	sayAsk        = "/ask"     // followed by a question
	sayDismiss    = "/dismiss" // followed by the ID of a finding
	sayPause      = "/pause"
	sayResume     = "/resume"
	sayCancel     = "/cancel"
	sayRetry      = "/retry"
	sayReady      = "/ready"
	sayHelp       = "/help"
	sayAnswer     = "/answer" // followed by the answer
	sayApprove    = "/approve"
	sayAlways     = "/approve always"
	sayDeny       = "/deny" // optionally followed by a reason
)

// work describes a task for the agent.
type work struct {
	kind    string
	profile agent.Profile // the most it may do
	apart   bool          // in the thread of automatic analyses, not in the conversation
	full    bool
	plan    bool // it changes nothing, and the answer is a plan
}

// command describes one command.
type command struct {
	word     string
	argument bool   // more words may follow on the first line
	help     string // its row in the list of commands; empty: it is in another command's row
	label    string // in that row; empty: the word itself

	// Exactly one of these is set.
	work    *work   // a task for the agent
	control control // an action of errand itself
	answers bool    // it answers a question by the agent

	onIssues   bool // it is also a command on an issue
	onlyIssues bool // and not on a pull request
}

// elsewhere reports whether it is no command there.
func (c command) elsewhere(onIssue bool) bool {
	return onIssue && !c.onIssues || !onIssue && c.onlyIssues
}

// control carries out a command that needs no agent. It returns a note for the author, and whether it succeeded.
// Repeating it must change nothing: an event may come late, and several times.
type control func(*controls, context.Context, *tasks.Desk, heard) (note string, ok bool, err error)

// commands returns all commands in the order of the help. (A variable would be an initialization cycle.)
func commands() []command {
	return []command{
		{word: sayReview, help: "review what is new since my last review", work: &work{kind: kindReview, profile: agent.Read, apart: true}},
		{word: sayReviewFull, help: "review all of it", work: &work{kind: kindReview, profile: agent.Read, apart: true, full: true}},
		{word: sayFix, help: "do what the issue, or the open reviews and comments, ask for; text below the command has priority", work: &work{kind: kindFix, profile: agent.Write}, onIssues: true},
		{word: sayPlan, argument: true, help: "plan what the issue asks for, and wait for `/approve`", work: &planned, onIssues: true, onlyIssues: true},
		{word: sayFixCI, help: "fix the failing checks", work: &work{kind: kindCheckFailure, profile: agent.Write}},
		{word: sayResolve, help: "merge the base branch and resolve the conflicts", work: &work{kind: kindMergeConflict, profile: agent.Write}},
		{word: sayAnalyze, help: "report on the state of this pull request without changing anything", work: &work{kind: kindAnalyze, profile: agent.Read, apart: true}},
		{word: sayAsk, argument: true, help: "answer a question without changing anything", work: &work{kind: kindComment, profile: agent.Read}, onIssues: true},
		{word: sayDismiss, argument: true, help: "never report that finding again", control: (*controls).dismiss},
		{word: sayPause, help: "stop or resume automatic work on this pull request", label: "`/pause`, `/resume`", control: (*controls).pause},
		{word: sayResume, control: (*controls).resume},
		{word: sayReady, help: "mark my draft as ready for review", control: (*controls).ready},
		{word: sayCancel, help: "stop the running tasks here", control: (*controls).stopAll, onIssues: true},
		{word: sayAnswer, argument: true, help: "answer my question", label: "`/answer …`, `/approve`, `/deny …`", answers: true, onIssues: true},
		{word: sayApprove, answers: true, onIssues: true},
		{word: sayAlways, answers: true, onIssues: true},
		{word: sayDeny, argument: true, answers: true, onIssues: true},
		{word: sayRetry, help: "retry the last failed task", control: (*controls).retry, onIssues: true},
		{word: sayHelp, help: "show this list", control: showHelp, onIssues: true},
	}
}

// findCommand returns the command with this word, or the zero value.
func findCommand(word string) command {
	for _, c := range commands() {
		if c.word == word {
			return c
		}
	}
	return command{}
}

func showHelp(_ *controls, _ context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return help(h.onIssue), true, nil
}

// help lists the commands as Markdown.
func help(onIssue bool) string {
	var b strings.Builder
	where := "in a comment, on a line of the diff or in a review"
	if onIssue {
		where = "in an issue or a comment"
	}
	b.WriteString("To give me a task, mention me " + where + "; I answer there. Or begin a comment with one of these lines:\n\n| | |\n|---|---|")
	for _, c := range commands() {
		label := "`" + c.word + "`"
		if c.argument {
			label = "`" + c.word + " …`"
		}
		if c.help != "" && !c.elsewhere(onIssue) {
			fmt.Fprintf(&b, "\n| %s | %s |", cmp.Or(c.label, label), c.help)
		}
	}
	return b.String()
}

// mentioned is the work for a mention that is not a command.
var mentioned = work{kind: kindComment, profile: agent.Write}
