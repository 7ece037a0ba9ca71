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

// work is what the agent is to do.
type work struct {
	kind    string
	profile agent.Profile // at most
	apart   bool          // in the thread of automatic analyses, and not in the conversation
	full    bool
}

// command is one thing that a comment can ask for with its first line.
type command struct {
	word     string
	argument bool   // words may follow on the first line
	help     string // its row in the list of commands; empty: it is in another command's row
	label    string // in that row; empty: the word

	// One of these is set.
	work    *work   // what the agent is to do
	control control // what errand does itself
	answers bool    // it answers a question of the agent
}

// control carries out a command that takes no agent. It returns a note for the person, and whether it was done. Doing it again changes
// nothing: an event may come late, and several times.
type control func(*Source, context.Context, *tasks.Desk, heard) (note string, ok bool, err error)

// commands returns every command, in the order of the help. (A variable would be an initialization cycle.)
func commands() []command {
	return []command{
		{word: sayReview, help: "review what is new since my last review", work: &work{kind: kindReview, profile: agent.Read, apart: true}},
		{word: sayReviewFull, help: "review all of it", work: &work{kind: kindReview, profile: agent.Read, apart: true, full: true}},
		{word: sayFix, help: "do what the open reviews and comments ask for; what you write below it counts most", work: &work{kind: kindFix, profile: agent.Write}},
		{word: sayFixCI, help: "fix the failing checks", work: &work{kind: kindCheckFailure, profile: agent.Write}},
		{word: sayResolve, help: "merge the base branch and resolve the conflicts", work: &work{kind: kindMergeConflict, profile: agent.Write}},
		{word: sayAnalyze, help: "report on the state of this pull request, and change nothing", work: &work{kind: kindAnalyze, profile: agent.Read, apart: true}},
		{word: sayAsk, argument: true, help: "answer a question, and change nothing", work: &work{kind: kindComment, profile: agent.Read}},
		{word: sayDismiss, argument: true, help: "never bring up that finding again", control: (*Source).dismiss},
		{word: sayPause, help: "do nothing here by myself; do so again", label: "`/pause`, `/resume`", control: (*Source).pause},
		{word: sayResume, control: (*Source).resume},
		{word: sayCancel, help: "stop what I am doing here", control: (*Source).stopAll},
		{word: sayAnswer, argument: true, help: "answer what I have asked", label: "`/answer …`, `/approve`, `/deny …`", answers: true},
		{word: sayApprove, answers: true},
		{word: sayAlways, answers: true},
		{word: sayDeny, argument: true, answers: true},
		{word: sayRetry, help: "try again what failed last", control: (*Source).retry},
		{word: sayHelp, help: "this list", control: func(*Source, context.Context, *tasks.Desk, heard) (string, bool, error) { return help(), true, nil }},
	}
}

// findCommand returns the command with a word; the zero value if there is none.
func findCommand(word string) command {
	for _, c := range commands() {
		if c.word == word {
			return c
		}
	}
	return command{}
}

// help lists the commands.
func help() string {
	var b strings.Builder
	b.WriteString("Mention me with what you want done, in a comment, on a line of the diff or in a review; I answer there. Or begin a comment " +
		"with one of these lines:\n\n| | |\n|---|---|")
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

// mentioned is what a mention asks for that is no command.
var mentioned = work{kind: kindComment, profile: agent.Write}

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

// What is not said but shown: blocks of code, code in a line, quotes.
var shown = []*regexp.Regexp{
	regexp.MustCompile("(?ms)^[ \t>*+.)0-9-]*```.*?(?:^[ \t>]*```|\\z)"),
	regexp.MustCompile(`(?ms)^[ \t>*+.)0-9-]*~~~.*?(?:^[ \t>]*~~~|\z)`),
	regexp.MustCompile("``[^\n]+?``|`[^`\n]+`"),
	regexp.MustCompile(`(?m)^[ \t]*>.*$`),
}

// mention is anybody's, with what is typed after it. What GitHub links as a team or takes for an address is none.
var mention = regexp.MustCompile(`(?:^|[^0-9A-Za-z_/.@-])(@([0-9A-Za-z](?:-?[0-9A-Za-z_])*(?:\[bot\])?)[,:]?[ \t]*)`)

// cutMention takes the mentions of a login out of a comment and reports whether there were any. Those in code and in quotes do not
// count, and stay: somebody shows there how one asks, or what another has asked. An App is mentioned without the [bot] of its login.
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

// hidden is a comment of the same length in which nothing is left of what is only shown.
func hidden(text string) string {
	for _, form := range shown {
		text = form.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\x00", len(s)) })
	}
	return text
}
