package github

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/intake"
)

// retry runs the last failed task again.
func (i *interpreter) retry(ctx context.Context, h remarkEvent) (note string, ok bool, err error) {
	command := i.command(h)
	last, live, err := i.lastFailed(ctx, h, command.At)
	if err != nil {
		return "", false, err
	}
	if last.Task.ID == "" {
		if live {
			return intake.StillRunning, false, nil
		}
		return neverFailed, false, nil
	}
	reply, err := command.Retry(ctx, last)
	note, ok = commandNote(reply)
	return note, ok, err
}

// lastFailed returns the latest task of a pull request that failed before the comment and that its author may retry, or
// the zero value if the newest tasks include none. live reports whether a task has not ended.
func (i *interpreter) lastFailed(
	ctx context.Context, h remarkEvent, at time.Time,
) (last tasks.Status, live bool, err error) {
	page, err := i.desk.List(ctx, desk.Filter{Source: sourceName, Repo: h.Repo, Limit: maxTried})
	if err != nil {
		return last, false, err
	}
	for _, st := range page.Tasks {
		if o, err := subject.Of(st.Task); err != nil || o.Number != h.Number || !strings.EqualFold(o.Repo, h.Repo) ||
			st.Task.ID > h.task() {
			continue
		}
		if st.Into != "" { // the task whose run absorbed it
			if st, err = i.desk.Status(ctx, st.Into); errors.Is(err, tasks.ErrNotFound) {
				continue
			} else if err != nil {
				return last, false, err
			}
		}
		if st.Ending == nil {
			live = true
		} else if !st.Ended.After(at) && failedFor(h.Author, st) {
			return st, live, nil
		}
	}
	return tasks.Status{}, live, nil
}

// failedFor reports whether login may retry a task that has ended: not if it was answered, superseded or withdrawn. A
// refused task can only be retried by its author, who has to fix the reason.
func failedFor(login string, st tasks.Status) bool {
	switch st.Ending.Kind {
	case tasks.Failed, tasks.TimedOut, tasks.Stalled, tasks.Cancelled, tasks.Taken, tasks.Lost:
		return true
	case tasks.Refused:
		o, err := subject.Of(st.Task)
		return err == nil && o.Asked != nil && strings.EqualFold(st.Task.Actor, login)
	}
	return false
}
