package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// What is said of commands.
const (
	unknownCommand = "Unknown command. Comment `/help` for the list."
	nothing        = "Nothing is under way here."
	neverFailed    = "Nothing has gone wrong here that I could try again."
	underWay       = "This is under way already."
	slower         = "Whoever wrote it asks faster here than errand takes it."
)

// Bounds of what is looked through for something to try again, in tasks of a repository, and of the orders that are known to be done.
const (
	maxTried  = 200
	maxObeyed = 20
)

// obey does what a control says, for somebody who may write to the repository.
func (s *Source) obey(ctx context.Context, desk *tasks.Desk, h heard, command string) (said string, err error) {
	err = s.mustWrite(ctx, h.origin(), h.author)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		h.after(func(ctx context.Context) { s.tell(ctx, h, notDone, "") })
	}
	if err != nil {
		return "", err
	}
	note, ok, err := s.carryOut(ctx, desk, h, command)
	if err != nil {
		return "", fmt.Errorf("obey %s on %s: %w", command, h.origin(), err)
	}
	s.log.Info("command obeyed", "command", command, "thread", h.thread(), "user", h.author, "done", ok)
	h.after(func(ctx context.Context) {
		s.sign(ctx, h, eyes)
		s.tell(ctx, h, signOf(ok), note)
	})
	return "Obeyed " + command + ".", nil
}

// carryOut does what a control says, unless that was done when the same event came before: then there might be something else to stop or to
// try again, or nothing any more.
func (s *Source) carryOut(ctx context.Context, desk *tasks.Desk, h heard, command string) (note string, ok bool, err error) {
	p, err := s.memory.state(ctx, h.origin())
	if err != nil || slices.Contains(p.Obeyed, h.task()) {
		return "", err == nil, err
	}
	note, ok, err = findCommand(command).control(s, ctx, desk, h)
	if err != nil || !ok || note != "" {
		return note, ok, err
	}
	return note, ok, s.memory.changeState(ctx, h.origin(), func(p *prState) error {
		p.Obeyed = append(p.Obeyed, h.task())
		p.Obeyed = p.Obeyed[max(0, len(p.Obeyed)-maxObeyed):]
		return nil
	})
}

// signOf is the last sign that a comment gets.
func signOf(ok bool) string {
	if ok {
		return done
	}
	return notDone
}

// pause keeps us from doing anything by ourselves.
func (s *Source) pause(ctx context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return "", true, s.memory.changeState(ctx, h.origin(), func(p *prState) error {
		if p.hears(h.at) {
			p.Paused, p.PausedBy = true, h.author
		}
		return nil
	})
}

// resume ends a pause, whoever or whatever began it.
func (s *Source) resume(ctx context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return "", true, s.memory.changeState(ctx, h.origin(), func(p *prState) error {
		if p.hears(h.at) {
			p.Paused, p.PausedBy, p.Reviews = false, "", 0
			p.rest()
		}
		return nil
	})
}

// hears notes when somebody has said to pause or to resume, and reports whether nobody has said either since: the event may be a late one.
func (p *prState) hears(at time.Time) bool {
	if at.Before(p.Said) {
		return false
	}
	p.Said = at
	return true
}

// stopAll stops what is under way for a pull request and was asked for before.
func (s *Source) stopAll(ctx context.Context, d *tasks.Desk, h heard) (note string, ok bool, err error) {
	for _, thread := range h.threads() {
		stopped, _, err := d.StopAll(ctx, thread, h.task(), h.author, func(tasks.Task) bool { return true })
		if err != nil {
			return "", false, err
		}
		ok = ok || stopped > 0
	}
	if !ok {
		note = nothing
	}
	return note, ok, nil
}

// retry lets what ended badly last run again.
func (s *Source) retry(ctx context.Context, d *tasks.Desk, h heard) (note string, ok bool, err error) {
	said := h.at.Add(time.Second) // GitHub tells times in whole seconds
	last, live, err := s.lastFailed(ctx, d, h, said)
	switch {
	case err != nil:
		return "", false, err
	case last.Task.ID == "" && live:
		return underWay, false, nil
	case last.Task.ID == "":
		return neverFailed, false, nil
	}
	if err = d.Repeat(ctx, last, said); errors.Is(err, tasks.ErrNotEnded) {
		return underWay, false, nil
	}
	return "", err == nil, err
}

// lastFailed is the latest task of a pull request, whoever began it, that has ended badly before somebody spoke and that he may have run again;
// zero where there is none among the newest. live reports whether one has not ended.
func (s *Source) lastFailed(ctx context.Context, d *tasks.Desk, h heard, said time.Time) (last tasks.Status, live bool, err error) {
	page, err := d.List(ctx, tasks.Filter{Source: s.Name(), Repo: h.repo, Limit: maxTried})
	if err != nil {
		return last, false, err
	}
	for _, st := range page.Tasks {
		if o, err := originOf(st.Task); err != nil || o.Number != h.number || !strings.EqualFold(o.Repo, h.repo) || st.Task.ID > h.task() {
			continue
		}
		if st.Into != "" { // all that its run has taken up
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

// failedFor reports whether a task ended so that it may be tried again: not if it was answered, overtaken or taken back. What was refused
// was so for reasons that are its own, which are for whoever asked to mend.
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
