package github

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// What is said of commands.
const (
	unknownCommand = "That is no command of mine. Comment `/help` for those I know, or ask me in words."
	nothing        = "Nothing is under way here."
	neverAsked     = "Nobody has asked me for anything here that I could try again."
	underWay       = "This is under way already."
	slower         = "Whoever wrote it asks faster here than errand takes it."
)

// controls are the commands that take no agent. Each gives what there is to say, and whether it was done. It changes nothing when it is
// done again: an event may come late, and often.
var controls = map[string]func(*Source, context.Context, *tasks.Desk, heard) (note string, ok bool, err error){
	sayPause:  (*Source).pause,
	sayResume: (*Source).resume,
	sayCancel: (*Source).stopAll,
	sayRetry:  (*Source).retry,
	sayHelp: func(*Source, context.Context, *tasks.Desk, heard) (string, bool, error) {
		return help, true, nil
	},
}

// obey does what a control says, for somebody who may write to the repository.
func (s *Source) obey(ctx context.Context, desk *tasks.Desk, d delivery, h heard, command string) (said string, err error) {
	err = s.mustWrite(ctx, h.origin(), h.author)
	if _, ok := errors.AsType[*tasks.InputError](err); ok {
		d.after(func(ctx context.Context) { s.tell(ctx, h, notDone, "") })
	}
	if err != nil {
		return "", err
	}
	note, ok, err := controls[command](s, ctx, desk, h)
	if err != nil {
		return "", fmt.Errorf("obey %s on %s: %w", command, h.origin(), err)
	}
	s.log.Info("command obeyed", "command", command, "thread", h.thread(), "user", h.author, "done", ok)
	d.after(func(ctx context.Context) {
		s.sign(ctx, h, eyes)
		s.tell(ctx, h, signOf(ok), note)
	})
	return "Obeyed " + command + ".", nil
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
	return "", true, s.changeState(ctx, h.origin(), func(p *prState) error {
		if p.hears(h.at) {
			p.Paused, p.PausedBy = true, h.author
		}
		return nil
	})
}

// resume ends a pause, whoever or whatever began it.
func (s *Source) resume(ctx context.Context, _ *tasks.Desk, h heard) (string, bool, error) {
	return "", true, s.changeState(ctx, h.origin(), func(p *prState) error {
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

// retry lets what was asked for last run again.
func (s *Source) retry(ctx context.Context, d *tasks.Desk, h heard) (note string, ok bool, err error) {
	var last tasks.Status
	for _, thread := range h.threads() {
		st, err := latestIn(ctx, d, thread)
		if err != nil {
			return "", false, err
		}
		if st.Task.ID > last.Task.ID {
			last = st
		}
	}
	if last.Task.ID == "" {
		return neverAsked, false, nil
	}
	// GitHub tells times in whole seconds.
	if err = d.Repeat(ctx, last, h.at.Add(time.Second)); errors.Is(err, tasks.ErrNotEnded) {
		return underWay, false, nil
	}
	return "", err == nil, err
}

// latestIn is what was asked for last in a thread, or the task whose run has taken it up; zero where there is none.
func latestIn(ctx context.Context, d *tasks.Desk, thread string) (tasks.Status, error) {
	t, err := d.Thread(ctx, thread)
	var st tasks.Status
	if err == nil {
		st, err = d.Latest(ctx, t)
	}
	if errors.Is(err, tasks.ErrNotFound) {
		return tasks.Status{}, nil
	}
	return st, err
}
