package github

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// unamended is the response to an edit that changes no task.
var unamended = subject.IgnoreQuietly("No waiting task is changed by this edit.")

// amendable reports whether an edit changes a task: only that of its author, before the task starts. An approval stays
// what it is, and the text of an issue has no part in its label.
func (h remarkEvent) amendable(st tasks.Status) bool {
	o, err := subject.Of(st.Task)
	return err == nil && st.State == "waiting" && strings.EqualFold(h.by, h.Author) &&
		o.Action == subject.ActionAsked && o.Asked.Command != cmdApprove
}

// amend changes the task of an edited remark on an issue, or withdraws it if the new text requests nothing. A task that
// has started keeps the text that it was requested with, as does one whose text someone other than its author has
// edited. If the event of the remark itself is still to be interpreted, this one takes its place.
func (i *interpreter) amend(ctx context.Context, d delivery) (response string, err error) {
	h := *d.remark
	if !h.OnIssue {
		return "", unamended
	}
	st, err := i.desk.Status(ctx, h.task())
	unknown := errors.Is(err, tasks.ErrNotFound)
	if err != nil && !unknown {
		return "", err
	}
	if unknown {
		early, err := i.isEarly(ctx, h)
		if err != nil {
			return "", err
		}
		if !early {
			return "", unamended
		}
	} else {
		if st.Ending != nil && st.Ending.Kind == tasks.Withdrawn { // perhaps not completely
			return i.withdraw(ctx, d)
		}
		if !h.amendable(st) {
			return "", unamended
		}
	}
	if h.said, err = i.read(ctx, h); err != nil {
		return "", err
	}
	if !h.said.requests(h) {
		return i.withdraw(ctx, d)
	}
	if unknown { // and changes the task if the other event made one meanwhile
		if response, err = i.remark(ctx, d); err != nil {
			return response, err
		}
	}
	return i.reword(ctx, h)
}

// lateEvent is how much later than its remark an event is interpreted at most: the inbox tries it again for a day.
const lateEvent = 25 * time.Hour

// isEarly reports whether the event of an edited remark may still come and make a request of its old text.
func (i *interpreter) isEarly(ctx context.Context, h remarkEvent) (bool, error) {
	if !strings.EqualFold(h.by, h.Author) || i.now().Sub(h.At) > lateEvent {
		return false, nil
	}
	h.Body = h.before
	old, err := i.read(ctx, h)
	return old.requests(h), err
}

// reword gives a waiting task the words of an edited remark.
func (i *interpreter) reword(ctx context.Context, h remarkEvent) (response string, err error) {
	w, err := i.workOf(ctx, h)
	if err != nil {
		return "", err
	}
	request, err := i.requestedIssueTask(ctx, h, w)
	if err != nil {
		return "", err
	}
	t, err := request.WithOrigin()
	if err != nil {
		return "", err
	}
	at := h.Edited
	if h.Place == thread.InIssue {
		at = h.Issue.GetUpdatedAt().Time
	}
	var done desk.Amendment
	err = i.desk.As(ctx, h.sender(), "edit", t.ID, func(ctx context.Context) (_ bool, err error) {
		done, err = i.desk.Amend(ctx, t, desk.Edit{Key: strconv.FormatInt(at.UnixMicro(), 10), Waiting: true})
		return false, err
	})
	if err != nil {
		return "", err
	}
	if done != desk.Replaced {
		return "", unamended
	}
	if err := i.notePlan(ctx, h); err != nil {
		return "", err
	}
	return "Amended " + t.ID, nil
}
