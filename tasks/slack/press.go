package slack

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// pressLimit bounds what a press of a button does. Who pressed is told when it took longer.
const pressLimit = 10 * time.Second

// What is said to who pressed a button, and to nobody else.
const (
	troubled = "That did not work. Please try again in a moment."
)

// stop stops a task. Its end is told by its messages.
func (s *Source) stop(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		st, err := s.pressed(ctx, d, p, p.value)
		if err != nil {
			return "", err
		}
		if st.Ending != nil {
			return intake.HasEnded, nil
		}
		if ok, err := s.mayStop(ctx, d, p.origin.User, st); err != nil || !ok {
			return intake.NotAllowed, err
		}
		if st, err = d.Cancel(ctx, st.Task.ID, p.name); err != nil {
			return "", err
		}
		s.log.Info("stop pressed", "run", st.Task.ID, "user", p.origin.User)
		if st.Ending != nil {
			return "", nil
		}
		return intake.Stopping, nil
	})
}

// tryAgain lets a task that has ended run again.
func (s *Source) tryAgain(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		st, err := s.pressed(ctx, d, p, p.value)
		if err != nil {
			return "", err
		}
		if _, err = d.Retry(ctx, st.Task.ID); errors.Is(err, tasks.ErrNotEnded) {
			return intake.StillRunning, nil
		}
		if err != nil {
			return "", err
		}
		s.log.Info("retry pressed", "run", st.Task.ID, "user", p.origin.User)
		if o, err := originOf(st.Task); err == nil {
			s.react(ctx, o, eyes)
		}
		return intake.Retrying, nil
	})
}

// refusal is what a press comes to that is not served: a sentence for who pressed.
type refusal string

func (r refusal) Error() string { return string(r) }

// pressed is the task that a press is about, for who may have a say in it. A refusal says why it is not served.
func (s *Source) pressed(ctx context.Context, d *tasks.Desk, p press, id string) (tasks.Status, error) {
	st, err := s.known(ctx, d, id)
	if err == nil && !s.governs(p.origin.User, st.Task) {
		err = refusal(intake.NotAllowed)
	}
	return st, err
}

// known is a task of ours, by what a button says it is about.
func (s *Source) known(ctx context.Context, d *tasks.Desk, id string) (tasks.Status, error) {
	if !tasks.ValidID(id) {
		return tasks.Status{}, refusal(intake.Forgotten)
	}
	st, err := d.Status(ctx, id)
	if errors.Is(err, tasks.ErrNotFound) || err == nil && st.Task.Source != s.Name() {
		return st, refusal(intake.Forgotten)
	}
	return st, err
}

// governs reports whether a user may stop a task, repeat it and approve what it does.
func (s *Source) governs(user string, t tasks.Task) bool {
	return user == t.Actor || slices.Contains(s.cfg.Approvers, user)
}

// mayStop reports whether a user may stop a task that is under way. With one that another's run has taken up that run would stop.
func (s *Source) mayStop(ctx context.Context, d *tasks.Desk, user string, st tasks.Status) (bool, error) {
	if !s.governs(user, st.Task) || st.Into == "" {
		return s.governs(user, st.Task), nil
	}
	run, err := d.Status(ctx, st.Into)
	return err == nil && s.governs(user, run.Task), err
}

// attend does what a button is for and tells who pressed it what came of it, if there is something to tell.
func (s *Source) attend(ctx context.Context, p press, do func(context.Context) (string, error)) {
	limited, cancel := context.WithTimeout(ctx, pressLimit)
	defer cancel()
	sentence, err := do(limited)
	if why, ok := errors.AsType[refusal](err); ok {
		sentence, err = string(why), nil
	}
	if err != nil {
		s.log.Warn("serve button", "action", p.action, "run", p.value, "err", err)
		sentence = troubled
	}
	if sentence == "" {
		return
	}
	if err := s.whisper(ctx, p.origin, sentence); err != nil && ctx.Err() == nil {
		s.log.Warn("answer button", "action", p.action, "run", p.value, "err", err)
	}
}
