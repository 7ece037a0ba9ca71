package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
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

	onIssues      bool // it is also a command on an issue
	onlyIssues    bool // and not on a pull request
	inDiscussions bool // it is also a command in a discussion
}

// elsewhere reports whether it is no command there.
func (c command) elsewhere(h heard) bool {
	if h.discussion != nil {
		return !c.inDiscussions
	}
	return h.onIssue && !c.onIssues || !h.onIssue && c.onlyIssues
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
		{word: sayAsk, argument: true, help: "answer a question without changing anything", work: &work{kind: kindComment, profile: agent.Read}, onIssues: true, inDiscussions: true},
		{word: sayDismiss, argument: true, help: "never report that finding again", control: (*controls).dismiss},
		{word: sayPause, help: "stop or resume automatic work on this pull request", label: "`/pause`, `/resume`", control: (*controls).pause},
		{word: sayResume, control: (*controls).resume},
		{word: sayReady, help: "mark my draft as ready for review", control: (*controls).ready},
		{word: sayCancel, help: "stop the running tasks here", control: (*controls).stopAll, onIssues: true, inDiscussions: true},
		{word: sayAnswer, argument: true, help: "answer my question", label: "`/answer …`, `/approve`, `/deny …`", answers: true, onIssues: true, inDiscussions: true},
		{word: sayApprove, answers: true, onIssues: true, inDiscussions: true},
		{word: sayAlways, answers: true, onIssues: true, inDiscussions: true},
		{word: sayDeny, argument: true, answers: true, onIssues: true, inDiscussions: true},
		{word: sayRetry, help: "retry the last failed task", control: (*controls).retry, onIssues: true, inDiscussions: true},
		{word: sayHelp, help: "show this list", control: showHelp, onIssues: true, inDiscussions: true},
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
	return help(h), true, nil
}

// help lists the commands as Markdown.
func help(h heard) string {
	var b strings.Builder
	where := "in a comment, on a line of the diff or in a review"
	switch {
	case h.onIssue:
		where = "in an issue or a comment"
	case h.discussion != nil:
		where = "in a discussion or a comment"
	}
	b.WriteString("To give me a task, mention me " + where + "; I answer there. Or begin a comment with one of these lines:\n\n| | |\n|---|---|")
	for _, c := range commands() {
		label := "`" + c.word + "`"
		if c.argument {
			label = "`" + c.word + " …`"
		}
		if c.help != "" && !c.elsewhere(h) {
			fmt.Fprintf(&b, "\n| %s | %s |", cmp.Or(c.label, label), c.help)
		}
	}
	return b.String()
}

// mentioned is the work for a mention that is not a command.
var mentioned = work{kind: kindComment, profile: agent.Write}

// Replies to commands.
const (
	unknownCommand   = "Unknown command. Comment `/help` for the list."
	onlyOnIssues     = "That command is for issues. Comment `/help` for the list."
	onlyOnPulls      = "That command is for pull requests. Comment `/help` for the list."
	notInDiscussions = "In discussions I only answer questions. To have something done, open an issue and mention me there."
	neverFailed      = "There is no failed task to retry."
	slower           = "The author has sent too many requests here."
)

// Bounds of the search for a task to retry, in tasks of a repository, and of the remembered commands.
const (
	maxTried  = 200
	maxObeyed = 20
)

// controls carries out the commands that need no agent. It is safe for concurrent use.
type controls struct {
	gate     *gate
	comments *commenter
	memory   memory
	log      *slog.Logger
}

// obey carries out a control command of a person with write access.
func (c *controls) obey(ctx context.Context, desk *tasks.Desk, h heard, command string) (said string, err error) {
	var note string
	var ok bool
	err = desk.As(ctx, h.sender(), strings.TrimPrefix(command, "/"), h.origin().String(), func(ctx context.Context) (changed bool, err error) {
		if err := c.gate.mustWrite(ctx, h.origin(), h.author); err != nil {
			return false, err
		}
		var before bool
		note, ok, before, err = c.carryOut(ctx, desk, h, command)
		if err != nil {
			err = fmt.Errorf("carry out %s on %s: %w", command, h.origin(), err)
		}
		return ok && !before && command != sayHelp, err
	})
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		h.after(func(ctx context.Context) { c.comments.postNote(ctx, h, notDone, "") })
	}
	if err != nil {
		return "", err
	}
	c.log.Info("command obeyed", "command", command, "thread", h.thread(), "user", h.author, "done", ok)
	h.after(func(ctx context.Context) {
		c.comments.sign(ctx, h, eyes)
		c.comments.postNote(ctx, h, signOf(ok), note)
	})
	return "Obeyed " + command + ".", nil
}

// carryOut carries out a control command once. When the same event comes again, there may be another task to stop or
// retry. before reports whether it was carried out earlier.
func (c *controls) carryOut(ctx context.Context, desk *tasks.Desk, h heard, command string) (note string, ok, before bool, err error) {
	p, err := c.memory.state(ctx, h.origin())
	if before = err == nil && slices.Contains(p.Obeyed, h.task()); before || err != nil {
		return "", before, before, err
	}
	note, ok, err = findCommand(command).control(c, ctx, desk, h)
	if err != nil || !ok || note != "" {
		return note, ok, false, err
	}
	return note, ok, false, c.memory.changeState(ctx, h.origin(), func(p *prState) error {
		p.Obeyed = append(p.Obeyed, h.task())
		p.Obeyed = p.Obeyed[max(0, len(p.Obeyed)-maxObeyed):]
		return nil
	})
}

// signOf returns the final reaction for a comment.
func signOf(ok bool) string {
	if ok {
		return done
	}
	return notDone
}

// pause stops automatic work.
func (c *controls) pause(ctx context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return "", true, c.memory.changeState(ctx, h.origin(), func(p *prState) error {
		if p.hears(h.at) {
			p.Paused, p.PausedBy = true, h.author
		}
		return nil
	})
}

// resume ends a pause, whether a person or a limit caused it.
func (c *controls) resume(ctx context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return "", true, c.memory.changeState(ctx, h.origin(), func(p *prState) error {
		if p.hears(h.at) {
			p.Paused, p.PausedBy, p.Reviews = false, "", 0
			p.rest()
		}
		return nil
	})
}

// ready marks errand's draft as ready for review.
func (c *controls) ready(ctx context.Context, _ *tasks.Desk, h heard) (note string, ok bool, err error) {
	err = tasks.FromForge(c.gate.api.forge.MarkReady(ctx, h.repo, h.number))
	if input, refused := errors.AsType[*tasks.InputError](err); refused {
		return input.Sentence, false, nil
	}
	return "", err == nil, err
}

// hears records the time of a pause or resume command and reports whether it is the latest one: an event may come late.
func (p *prState) hears(at time.Time) bool {
	if at.Before(p.Said) {
		return false
	}
	p.Said = at
	return true
}

// command is a comment's command in the form that all sources share. The author has write access.
func (c *controls) command(d *tasks.Desk, h heard) intake.Command {
	// GitHub gives times in whole seconds.
	return intake.Command{Desk: d, ID: h.task(), At: h.at.Add(time.Second), By: h.author, May: func(tasks.Task) bool { return true }}
}

// noteOf returns the note for a reply. A command that was carried out gets only a reaction.
func noteOf(r intake.Reply) (note string, ok bool) {
	if r.Done {
		return "", true
	}
	return r.Text, false
}

// stopAll stops the tasks of a pull request, an issue or a discussion that were requested before this comment, and drops a plan.
func (c *controls) stopAll(ctx context.Context, d *tasks.Desk, h heard) (note string, ok bool, err error) {
	reply, err := c.command(d, h).Stop(ctx, h.threads()...)
	note, ok = noteOf(reply)
	if err == nil && h.onIssue {
		var dropped bool
		if dropped, err = c.memory.dropPlan(ctx, h); dropped {
			note, ok = "", true
		}
	}
	return note, ok, err
}

// retry runs the last failed task again.
func (c *controls) retry(ctx context.Context, d *tasks.Desk, h heard) (note string, ok bool, err error) {
	command := c.command(d, h)
	last, live, err := c.lastFailed(ctx, d, h, command.At)
	switch {
	case err != nil:
		return "", false, err
	case last.Task.ID == "" && live:
		return intake.StillRunning, false, nil
	case last.Task.ID == "":
		return neverFailed, false, nil
	}
	reply, err := command.Retry(ctx, last)
	note, ok = noteOf(reply)
	return note, ok, err
}

// lastFailed returns the latest task of a pull request that failed before the comment and that its author may retry, or
// the zero value if the newest tasks include none. live reports whether a task has not ended.
func (c *controls) lastFailed(ctx context.Context, d *tasks.Desk, h heard, said time.Time) (last tasks.Status, live bool, err error) {
	page, err := d.List(ctx, tasks.Filter{Source: sourceName, Repo: h.repo, Limit: maxTried})
	if err != nil {
		return last, false, err
	}
	for _, st := range page.Tasks {
		if o, err := originOf(st.Task); err != nil || o.Number != h.number || !strings.EqualFold(o.Repo, h.repo) || st.Task.ID > h.task() {
			continue
		}
		if st.Into != "" { // the task whose run absorbed it
			if st, err = d.Status(ctx, st.Into); errors.Is(err, tasks.ErrNotFound) {
				continue
			} else if err != nil {
				return last, false, err
			}
		}
		switch {
		case st.Ending == nil:
			live = true
		case !st.Ended.After(said) && failedFor(h.author, st):
			return st, live, nil
		}
	}
	return tasks.Status{}, live, nil
}

// failedFor reports whether login may retry a task that has ended: not if it was answered, superseded or withdrawn. A
// refused task can only be retried by its author, who has to fix the reason.
func failedFor(login string, st tasks.Status) bool {
	switch st.Ending.Kind {
	case tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Cancelled, tasks.Lost:
		return true
	case tasks.Refused:
		o, err := originOf(st.Task)
		return err == nil && o.Asked != nil && strings.EqualFold(st.Task.Actor, login)
	}
	return false
}
