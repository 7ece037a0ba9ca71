package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/intake"
)

// A comment is a command if its first line begins with one of these words. The text behind a command that starts work,
// and below it, is given to the agent. The others have nothing else on their line, unless they have an argument.
const (
	cmdReview     = "/review"
	cmdReviewFull = "/review full"
	cmdFix        = "/fix"
	cmdFixCI      = "/fix-ci"
	cmdResolve    = "/resolve-conflicts"
	cmdAnalyze    = "/analyze"
	cmdPlan       = "/plan"    // optionally followed by instructions
	cmdAsk        = "/ask"     // followed by a question
	cmdDismiss    = "/dismiss" // followed by the ID of a finding
	cmdPause      = "/pause"
	cmdResume     = "/resume"
	cmdCancel     = "/cancel"
	cmdRetry      = "/retry"
	cmdReady      = "/ready"
	cmdHelp       = "/help"
	cmdAnswer     = "/answer" // followed by the answer
	cmdApprove    = "/approve"
	cmdAlways     = "/approve always"
	cmdDeny       = "/deny" // optionally followed by a reason
)

// work describes a task for the agent.
type work struct {
	kind      string
	profile   agent.Profile // the most it may do
	ownThread bool          // it runs in the thread of reviews, not in that of the conversation
	full      bool
	plan      bool // it changes nothing, and the answer is a plan
}

// command describes one command.
type command struct {
	word     string
	argument bool   // it needs more words, or usually has them
	help     string // description in the list of commands; empty if another command's row lists this one
	label    string // first column of that row, if it is not the word

	// Exactly one of these is set.
	work    *work   // a task for the agent
	control control // an action of errand itself
	answers bool    // an answer to a question of the agent

	onIssues   bool // also on issues
	onlyIssues bool // not on pull requests
}

// takesWords reports whether more words may follow on the first line. They count as if they were below it: people write
// their instructions behind a command that starts work.
func (c command) takesWords() bool { return c.argument || c.work != nil }

// unavailableFor reports whether the command does not exist at the place of h.
func (c command) unavailableFor(h remarkEvent) bool {
	return h.OnIssue && !c.onIssues || !h.OnIssue && c.onlyIssues
}

// control runs a command that needs no agent. It returns a note for the author, and whether the command succeeded. A
// second call must change nothing: an event may arrive late and several times.
type control func(*interpreter, context.Context, remarkEvent) (note string, ok bool, err error)

// commands returns all commands in the order of the help. (A variable would be an initialization cycle.)
func commands() []command {
	return []command{
		{
			word: cmdReview, help: "review what is new since my last review",
			work: &work{kind: subject.KindReview, profile: agent.Read, ownThread: true},
		},
		{
			word: cmdReviewFull, help: "review all of it",
			work: &work{kind: subject.KindReview, profile: agent.Read, ownThread: true, full: true},
		},
		{
			word: cmdFix,
			help: "do what the issue, or the open reviews and comments, ask for; text below the command has priority",
			work: &work{kind: subject.KindFix, profile: agent.Write}, onIssues: true,
		},
		{
			word: cmdPlan, argument: true, help: "plan what the issue asks for, and wait for `/approve`",
			work: &planWork, onIssues: true, onlyIssues: true,
		},
		{
			word: cmdFixCI, help: "fix the failing checks",
			work: &work{kind: subject.KindCheckFailure, profile: agent.Write},
		},
		{
			word: cmdResolve, help: "merge the base branch and resolve the conflicts",
			work: &work{kind: subject.KindMergeConflict, profile: agent.Write},
		},
		{
			word: cmdAnalyze, help: "report on the state of this pull request without changing anything",
			work: &work{kind: subject.KindAnalyze, profile: agent.Read, ownThread: true},
		},
		{
			word: cmdAsk, argument: true, help: "answer a question without changing anything",
			work: &work{kind: subject.KindComment, profile: agent.Read}, onIssues: true,
		},
		{word: cmdDismiss, argument: true, help: "never report that finding again", control: (*interpreter).dismiss},
		{
			word: cmdPause, help: "stop or resume automatic work on this pull request", label: "`/pause`, `/resume`",
			control: (*interpreter).pause,
		},
		{word: cmdResume, control: (*interpreter).resume},
		{word: cmdReady, help: "mark my draft as ready for review", control: (*interpreter).ready},
		{word: cmdCancel, help: "stop the running tasks here", control: (*interpreter).stopAll, onIssues: true},
		{
			word: cmdAnswer, argument: true, help: "answer my question", label: "`/answer …`, `/approve`, `/deny …`",
			answers: true, onIssues: true,
		},
		{word: cmdApprove, answers: true, onIssues: true},
		{word: cmdAlways, answers: true, onIssues: true},
		{word: cmdDeny, argument: true, answers: true, onIssues: true},
		{word: cmdRetry, help: "retry the last failed task", control: (*interpreter).retry, onIssues: true},
		{word: cmdHelp, help: "show this list", control: showHelp, onIssues: true},
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

// mentionWork is the work for a mention that is not a command.
var mentionWork = work{kind: subject.KindComment, profile: agent.Write}

// Replies to commands.
const (
	unknownCommand = "Unknown command. Comment `/help` for the list."
	onlyOnIssues   = "That command is for issues. Comment `/help` for the list."
	onlyOnPulls    = "That command is for pull requests. Comment `/help` for the list."
	neverFailed    = "There is no failed task to retry."
	slower         = "The author has sent too many requests here."
)

// standsAlone is the reply to a command with words behind it that it does not take.
func standsAlone(word string) string {
	return "`" + word + "` counts only alone on its line. To ask for something in words, mention me. Comment `/help` " +
		"for the list."
}

// Bounds of the search for a task to retry, in tasks of a repository, and of the remembered commands and deletions.
const (
	maxTried    = 200
	maxCommands = 20
	maxSettled  = 100
)

// runCommand runs a control command of a person with write access.
func (i *interpreter) runCommand(ctx context.Context, h remarkEvent) (response string, err error) {
	command := h.said.word
	var note string
	var ok bool
	err = i.desk.As(ctx, h.sender(), strings.TrimPrefix(command, "/"), h.String(),
		func(ctx context.Context) (changed bool, err error) {
			if err := i.gate.MustWrite(ctx, h.Ref, h.Author); err != nil {
				return false, err
			}
			var before bool
			note, ok, before, err = i.runOnce(ctx, h)
			if err != nil {
				err = fmt.Errorf("run %s on %s: %w", command, h.Ref, err)
			}
			return ok && !before && command != cmdHelp, err
		})
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		i.note(ctx, h, "", notDone)
	}
	if err != nil {
		return "", err
	}
	i.log.Info("command run", "command", command, "thread", h.thread(), "user", h.Author, "done", ok)
	i.note(ctx, h, note, eyes, resultReaction(ok))
	return "Ran " + command + ".", nil
}

// runOnce runs a control command, unless it ran before: when the same event arrives again, there may be another task to
// stop or retry. before reports whether it ran before.
func (i *interpreter) runOnce(ctx context.Context, h remarkEvent) (note string, ok, before bool, err error) {
	p, err := i.memory.State(ctx, h.Ref)
	if before = err == nil && slices.Contains(p.Commands, h.task()); before || err != nil {
		return "", before, before, err
	}
	note, ok, err = h.said.control(i, ctx, h)
	if err != nil || !ok || note != "" {
		return note, ok, false, err
	}
	return note, ok, false, i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		p.Commands = append(p.Commands, h.task())
		p.Commands = p.Commands[max(0, len(p.Commands)-maxCommands):]
		return nil
	})
}

// resultReaction returns the final reaction for a comment.
func resultReaction(ok bool) string {
	if ok {
		return done
	}
	return notDone
}

// command is a comment's command in the form that all sources share. The author has write access.
func (i *interpreter) command(h remarkEvent) intake.Command {
	// GitHub gives times in whole seconds.
	at := h.At.Add(time.Second)
	may := func(tasks.Task) bool { return true }
	return intake.Command{Desk: i.desk, ID: h.task(), At: at, By: h.Author, May: may}
}

// commandNote returns the note for a reply. A command that succeeded gets only a reaction.
func commandNote(r intake.Reply) (note string, ok bool) {
	if r.Done {
		return "", true
	}
	return r.Text, false
}
