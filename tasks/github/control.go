package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Replies to commands.
const (
	unknownCommand = "Unknown command. Comment `/help` for the list."
	onlyOnIssues   = "That command is for issues. Comment `/help` for the list."
	onlyOnPulls    = "That command is for pull requests. Comment `/help` for the list."
	neverFailed    = "There is no failed task to retry."
	slower         = "The author has sent too many requests here."
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

// stopAll stops the tasks of a pull request or an issue that were requested before this comment, and drops a plan.
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
