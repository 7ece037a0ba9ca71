package github

import (
	"context"
	"errors"
	"slices"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// withdraw withdraws the task of a comment that was deleted or no longer requests it, if the task has not started. It
// may be repeated.
func (i *interpreter) withdraw(ctx context.Context, d delivery) (response string, err error) {
	h := d.remark
	// First: the event of the comment, which may come later or now, looks for this after it has submitted.
	if err := i.noteSettled(ctx, *h); err != nil {
		return "", err
	}
	done, err := i.withdrawTask(ctx, *h)
	if err != nil {
		return "", err
	}
	if !done {
		return "", subject.IgnoreQuietly("No task of this comment is waiting.")
	}
	if d.action == actionEdited {
		i.respond(ctx, *h, func(ctx context.Context, t thread.Thread) error {
			return t.RemoveReaction(ctx, h.Remark, eyes)
		})
	}
	return "Withdrawn " + h.task(), nil
}

// noteSettled records that a comment becomes no task any more, if it is none: it was deleted, edited to be no request,
// refused, or an answer. Otherwise an edit would make it a new request.
func (i *interpreter) noteSettled(ctx context.Context, h remarkEvent) error {
	if err := i.worksOn(h.Repo); err != nil {
		return err
	}
	if _, err := i.desk.Status(ctx, h.task()); !errors.Is(err, tasks.ErrNotFound) {
		return err
	}
	return i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		if !slices.Contains(p.Settled, h.task()) {
			p.Settled = append(p.Settled, h.task())
			p.Settled = p.Settled[max(0, len(p.Settled)-maxSettled):]
		}
		return nil
	})
}

// withdrawTask withdraws the task of a comment, if there is one and it has not started.
func (i *interpreter) withdrawTask(ctx context.Context, h remarkEvent) (done bool, err error) {
	err = i.desk.As(ctx, h.sender(), "withdraw", h.task(), func(ctx context.Context) (_ bool, err error) {
		done, err = i.desk.Withdraw(ctx, h.task())
		if errors.Is(err, tasks.ErrNotFound) { // most comments are no task
			err = nil
		}
		return false, err
	})
	if err == nil && done && h.OnIssue {
		err = i.memory.ForgetRequest(ctx, h.Ref, h.task())
	}
	return done, err
}
