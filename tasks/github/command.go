package github

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
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
	sayAsk        = "/ask"     // followed by a question
	sayDismiss    = "/dismiss" // followed by the ID of a finding
	sayPause      = "/pause"
	sayResume     = "/resume"
	sayCancel     = "/cancel"
	sayRetry      = "/retry"
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
}

// control carries out a command that needs no agent. It returns a note for the author, and whether it succeeded.
// Repeating it must change nothing: an event may come late, and several times.
type control func(*Source, context.Context, *tasks.Desk, heard) (note string, ok bool, err error)

// commands returns all commands in the order of the help. (A variable would be an initialization cycle.)
func commands() []command {
	return []command{
		{word: sayReview, help: "review what is new since my last review", work: &work{kind: kindReview, profile: agent.Read, apart: true}},
		{word: sayReviewFull, help: "review all of it", work: &work{kind: kindReview, profile: agent.Read, apart: true, full: true}},
		{word: sayFix, help: "do what the open reviews and comments ask for; text below the command has priority", work: &work{kind: kindFix, profile: agent.Write}},
		{word: sayFixCI, help: "fix the failing checks", work: &work{kind: kindCheckFailure, profile: agent.Write}},
		{word: sayResolve, help: "merge the base branch and resolve the conflicts", work: &work{kind: kindMergeConflict, profile: agent.Write}},
		{word: sayAnalyze, help: "report on the state of this pull request without changing anything", work: &work{kind: kindAnalyze, profile: agent.Read, apart: true}},
		{word: sayAsk, argument: true, help: "answer a question without changing anything", work: &work{kind: kindComment, profile: agent.Read}},
		{word: sayDismiss, argument: true, help: "never report that finding again", control: (*Source).dismiss},
		{word: sayPause, help: "stop or resume automatic work on this pull request", label: "`/pause`, `/resume`", control: (*Source).pause},
		{word: sayResume, control: (*Source).resume},
		{word: sayCancel, help: "stop the running tasks on this pull request", control: (*Source).stopAll},
		{word: sayAnswer, argument: true, help: "answer my question", label: "`/answer …`, `/approve`, `/deny …`", answers: true},
		{word: sayApprove, answers: true},
		{word: sayAlways, answers: true},
		{word: sayDeny, argument: true, answers: true},
		{word: sayRetry, help: "retry the last failed task", control: (*Source).retry},
		{word: sayHelp, help: "show this list", control: func(*Source, context.Context, *tasks.Desk, heard) (string, bool, error) { return help(), true, nil }},
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

// help lists the commands as Markdown.
func help() string {
	var b strings.Builder
	b.WriteString("To give me a task, mention me in a comment, on a line of the diff or in a review; I answer there. " +
		"Or begin a comment with one of these lines:\n\n| | |\n|---|---|")
	for _, c := range commands() {
		label := "`" + c.word + "`"
		if c.argument {
			label = "`" + c.word + " …`"
		}
		if c.help != "" {
			fmt.Fprintf(&b, "\n| %s | %s |", cmp.Or(c.label, label), c.help)
		}
	}
	return b.String()
}

// mentioned is the work for a mention that is not a command.
var mentioned = work{kind: kindComment, profile: agent.Write}

// slash matches anything that looks like a command, including those of other bots.
var slash = regexp.MustCompile(`^/[a-z][a-z-]*(?:\s|$)`)

// added returns the text below a command for the prompt, or "".
func (o origin) added(t tasks.Task) string {
	if o.Asked == nil || o.Asked.Command == "" || o.Asked.Words == "" {
		return ""
	}
	return fmt.Sprintf("\n\n@%s adds this, which has priority:\n\n%s", t.Actor, o.Asked.Words)
}

// readCommand parses a comment without its mentions of errand: the command, or "" if the comment has none, and the
// other text.
func readCommand(text string) (command, words string) {
	first, below, _ := strings.Cut(text, "\n")
	first, below = strings.TrimSpace(first), strings.TrimSpace(below)
	for _, c := range commands() {
		if rest, ok := strings.CutPrefix(first, c.word+" "); ok && c.argument {
			first, below = c.word, strings.TrimSpace(rest+"\n"+below)
		}
	}
	if findCommand(first).word != "" {
		return first, below
	}
	return "", text
}

// Text that is quoted rather than said: code blocks, inline code, quotes.
var shown = []*regexp.Regexp{
	regexp.MustCompile("(?ms)^[ \t>*+.)0-9-]*```.*?(?:^[ \t>]*```|\\z)"),
	regexp.MustCompile(`(?ms)^[ \t>*+.)0-9-]*~~~.*?(?:^[ \t>]*~~~|\z)`),
	regexp.MustCompile("``[^\n]+?``|`[^`\n]+`"),
	regexp.MustCompile(`(?m)^[ \t]*>.*$`),
}

// mention matches a mention of any login, with the punctuation after it. Teams and mail addresses do not match.
var mention = regexp.MustCompile(`(?:^|[^0-9A-Za-z_/.@-])(@([0-9A-Za-z](?:-?[0-9A-Za-z_])*(?:\[bot\])?)[,:]?[ \t]*)`)

// cutMention removes the mentions of a login from a comment and reports whether there were any. Mentions in code and
// quotes do not count and stay, because they are examples or quotations. An App is mentioned without the [bot] of its
// login.
func cutMention(text, login string) (rest string, ok bool) {
	login = strings.TrimSuffix(login, "[bot]")
	if login == "" {
		return text, false
	}
	said := hidden(text)
	var b strings.Builder
	last := 0
	for _, at := range mention.FindAllStringSubmatchIndex(said, -1) {
		name, after := strings.TrimSuffix(said[at[4]:at[5]], "[bot]"), said[at[5]:]
		if !strings.EqualFold(name, login) || strings.HasPrefix(after, "/") || strings.HasPrefix(after, "@") {
			continue
		}
		b.WriteString(text[last:at[2]])
		last, ok = at[3], true
	}
	return strings.TrimSpace(b.String() + text[last:]), ok
}

// speaksTo reports whether a remark mentions a login or is a command.
func (r remark) speaksTo(login string) bool {
	text, named := cutMention(untrusted.Visible(r.body), login)
	command, _ := readCommand(text)
	return named || command != ""
}

// hidden blanks out quoted text in a comment and keeps its length.
func hidden(text string) string {
	for _, form := range shown {
		text = form.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\x00", len(s)) })
	}
	return text
}
