package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// closeConversation posts the answer, and then ends the comment with the state, also if GitHub refuses the answer.
// After any error the next attempt finds what was posted.
func (r *report) closeConversation(ctx context.Context, e tasks.Ending) error {
	failed := r.answerRequest(ctx, e)
	if failed != nil && !hub.Permanent(failed) {
		return failed
	}
	err := statusLeft(r.endState(ctx, e, failed != nil))
	return cmp.Or(failed, err)
}

// statusLeft is the error of ending the status beside an answer that is posted.
func statusLeft(err error) error {
	if err == nil {
		return nil
	}
	return &tasks.UnpostedError{Why: "GitHub does not answer as expected", Shown: true, Err: err}
}

// answerRequest posts the answer, unless there is none.
func (r *report) answerRequest(ctx context.Context, e tasks.Ending) error {
	stranger, silent, err := r.silent(ctx, e)
	if err == nil {
		err = r.by.memory.planEnded(ctx, r.task, r.o, e)
	}
	if err != nil || silent {
		return err
	}
	if stranger {
		e.Reason = noWork
	}
	m := message{
		task: r.task.ID, ending: e.Kind, at: e.At.UnixMicro(), to: r.target(e), since: r.since(),
		after: e.Retried, parts: r.answerParts(e),
	}
	if e.Found {
		m.parts = nil
	}
	if err := r.send(ctx, m); err != nil {
		return r.unposted(ctx, "post reply", err)
	}
	if e.Kind != tasks.Answered || r.o.Asked == nil {
		return nil
	}
	last, at := r.o.Asked.spot, r.o.Asked.At
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok && askedAt(id).After(at) {
			last, at = p, askedAt(id)
		}
	}
	return r.by.memory.answered(ctx, r.o, last, at)
}

// silent reports whether there is no reply: to a withdrawn request, to one on an issue that has ended since, and to
// people without permission, who get one answer on each pull request or issue.
func (r *report) silent(ctx context.Context, e tasks.Ending) (stranger, silent bool, _ error) {
	if isAutomatic(r.task, r.o) || r.o.byBot() {
		return false, endsSilently(e), nil
	}
	if e.Kind != tasks.Refused {
		return false, e.Kind == tasks.Withdrawn || e.Kind == tasks.Superseded, nil
	}
	p, err := r.by.gate.permission(ctx, r.o, r.task.Actor)
	if err != nil || p.CanWrite() {
		return false, false, err
	}
	first, err := r.by.memory.firstStranger(ctx, r.o)
	return true, !first, err
}

// target returns the comment to answer. Requests from several places are answered in the conversation.
func (r *report) target(e tasks.Ending) spot {
	if r.o.Asked == nil {
		return spot{Place: inConversation}
	}
	to := r.o.Asked.spot
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok && !to.sameThread(p) {
			return spot{Place: inConversation}
		}
	}
	return to
}

// since returns the earliest time at which the answer can have been posted.
func (r *report) since() time.Time {
	if r.o.Asked == nil {
		return time.Time{}
	}
	return r.o.Asked.At
}

// answerParts returns the parts of the answer.
func (r *report) answerParts(e tasks.Ending) []string {
	foot := r.foot(e, r.inReplyTo(e)...)
	if r.task.Options.Plan && e.Kind == tasks.Answered {
		foot = "\n\n" + howToApprove + foot
	}
	const head = 512 // room for the mark
	parts := markdown.Parts(text(e), hub.MaxComment-head-len(foot), markdown.Bytes)
	for i := range parts {
		if len(parts) > 1 {
			parts[i] = fmt.Sprintf("**(%d of %d)**\n\n%s", i+1, len(parts), parts[i])
		}
	}
	parts[len(parts)-1] += foot
	return parts
}

// inReplyTo returns a link to the request, if the answer is not below it.
func (r *report) inReplyTo(e tasks.Ending) []string {
	a := r.o.Asked
	if a == nil || a.Place == onLine || a.URL == "" {
		return nil
	}
	more := ""
	if n := len(e.Covers); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return []string{fmt.Sprintf("In reply to [%s](%s)%s", markdown.Unping(r.task.Actor), a.URL, more)}
}

// askedAt returns when a task was requested, from its ID.
func askedAt(id string) time.Time {
	digits, _, _ := strings.Cut(id, "-")
	micros, _ := strconv.ParseInt(digits, 10, 64)
	return time.UnixMicro(micros).UTC()
}

// spots returns the comments that requested a task.
func (o origin) spots() []spot {
	if o.Asked == nil {
		return slices.Clone(o.Also)
	}
	return append(slices.Clone(o.Also), o.Asked.spot)
}
