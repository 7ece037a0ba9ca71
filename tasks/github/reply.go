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

// reply reports a task by one comment at its end, where it was requested. The agent's progress is in the log: comments
// that are edited often do not help people who read them in their mail. On an issue, another comment shows the state.
type reply struct {
	posting
	states *latest // for the comment with the state; nil if the report shows no states
}

// openReply opens the report. Nothing is posted before the agent starts.
func (p posting) openReply(ctx context.Context) (tasks.Report, error) {
	r := &reply{posting: p}
	if p.origin.Issue != 0 {
		r.states = showLatest(ctx, p.by.pause, p.log, r.showState)
	}
	return r, nil
}

// Close posts the answer, and then ends the comment with the state, also if GitHub refuses the answer. After any error
// the next attempt finds what was posted.
func (r *reply) Close(ctx context.Context, e tasks.Ending) error {
	if r.states != nil {
		if err := r.states.close(ctx); err != nil {
			return err
		}
	}
	failed := r.post(ctx, e)
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

// post posts the answer, unless there is none.
func (r *reply) post(ctx context.Context, e tasks.Ending) error {
	stranger, silent, err := r.silent(ctx, e)
	if err == nil {
		err = r.by.memory.planEnded(ctx, r.task, r.origin, e)
	}
	if err != nil || silent {
		return err
	}
	if stranger {
		e.Reason = noWork
	}
	l := idempotentComment{
		task: r.task.ID, ending: e.Kind, at: e.At.UnixMicro(), to: r.target(e), since: r.since(),
		after: e.Retried, parts: r.bodies(e),
	}
	if e.Found {
		l.parts = nil
	}
	if err := r.by.comments.send(ctx, r.gh, r.origin, l); err != nil {
		return r.by.api.unposted(ctx, r.origin, "post reply", err)
	}
	if e.Kind != tasks.Answered || r.origin.Asked == nil {
		return nil
	}
	last, at := r.origin.Asked.spot, r.origin.Asked.At
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok && askedAt(id).After(at) {
			last, at = p, askedAt(id)
		}
	}
	return r.by.memory.answered(ctx, r.origin, last, at)
}

// silent reports whether there is no reply: to a withdrawn request, to one on an issue that has ended since, and to
// people without permission, who get one answer on each pull request or issue.
func (r *reply) silent(ctx context.Context, e tasks.Ending) (stranger, silent bool, _ error) {
	if isAutomatic(r.task, r.origin) || r.origin.byBot() {
		return false, endsSilently(e), nil
	}
	if e.Kind != tasks.Refused {
		return false, e.Kind == tasks.Withdrawn || e.Kind == tasks.Superseded, nil
	}
	p, err := r.by.gate.permission(ctx, r.origin, r.task.Actor)
	if err != nil || p.CanWrite() {
		return false, false, err
	}
	first, err := r.by.memory.firstStranger(ctx, r.origin)
	return true, !first, err
}

// target returns the comment to answer. Requests from several places are answered in the conversation.
func (r *reply) target(e tasks.Ending) spot {
	if r.origin.Asked == nil {
		return spot{Place: inConversation}
	}
	to := r.origin.Asked.spot
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok && !to.sameThread(p) {
			return spot{Place: inConversation}
		}
	}
	return to
}

// since returns the earliest time at which the answer can have been posted.
func (r *reply) since() time.Time {
	if r.origin.Asked == nil {
		return time.Time{}
	}
	return r.origin.Asked.At
}

// bodies returns the parts of the answer.
func (r *reply) bodies(e tasks.Ending) []string {
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
func (r *reply) inReplyTo(e tasks.Ending) []string {
	a := r.origin.Asked
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

// reactingReport is the report of a task that comments have requested. Close adds a reaction to them that shows the
// result.
type reactingReport struct {
	tasks.Report
	posting
}

// spots returns the comments that requested a task.
func (o origin) spots() []spot {
	if o.Asked == nil {
		return slices.Clone(o.Also)
	}
	return append(slices.Clone(o.Also), o.Asked.spot)
}

// Close closes the report and adds the reactions. It skips deleted comments and those that another task answers now.
func (a *reactingReport) Close(ctx context.Context, e tasks.Ending) error {
	if err := a.Report.Close(ctx, e); err != nil || e.Kind == tasks.Withdrawn {
		return err
	}
	var spots []spot
	if !isContinued(e) {
		spots = a.origin.spots()
	}
	for _, id := range e.Covers {
		if p, ok := spotOf(id); ok {
			spots = append(spots, p)
		}
	}
	for _, p := range spots {
		err := react(ctx, a.gh, a.origin, p, resultReaction(e.Kind == tasks.Answered))
		if hub.Permanent(err) {
			a.log.Warn("react", "comment", p.ID, "err", err)
		} else if err != nil {
			return statusLeft(a.by.api.reportError("react", err))
		}
	}
	return nil
}
