package github

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// reply reports a task by one comment at its end, where it was requested. The agent's progress is in the log: comments
// that are edited often do not help people who read them in their mail. On an issue, another comment shows the state.
type reply struct {
	by     *reporter
	gh     *github.Client
	origin origin
	task   tasks.Task
	log    *slog.Logger

	states *latest // for the comment with the state; nil if the report shows no states
}

// openReply opens the report. Nothing is posted before the agent starts.
func (r *reporter) openReply(ctx context.Context, t tasks.Task, o origin) (tasks.Report, error) {
	p, err := r.newReply(ctx, t, o)
	if err != nil {
		return nil, r.api.reportError("reach "+o.String(), err)
	}
	if o.Issue != 0 {
		p.states = showLatest(ctx, r.pause, p.log, p.showState)
	}
	return p, nil
}

func (r *reporter) newReply(ctx context.Context, t tasks.Task, o origin) (*reply, error) {
	gh, err := r.api.client(ctx, o)
	return &reply{by: r, gh: gh, origin: o, task: t, log: r.log.With("run", t.ID, "thread", t.Thread)}, err
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
	foot := addenda(e) + "\n\n---\n<sub>" + r.footer(e) + "</sub>\n"
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

// footer returns the line of facts, with links to the request and the run.
func (r *reply) footer(e tasks.Ending) string {
	var facts []string
	if a := r.origin.Asked; a != nil && a.Place != onLine && a.URL != "" {
		more := ""
		if n := len(e.Covers); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		facts = append(facts, fmt.Sprintf("In reply to [%s](%s)%s", markdown.Unping(r.task.Actor), a.URL, more))
	}
	if footer := e.Footer(); footer != "" {
		facts = append(facts, markdown.Unping(footer))
	}
	run := "run " + r.task.ID
	if r.by.consoleURL != "" {
		run = fmt.Sprintf("[%s](%s)", run, r.by.page(r.origin, r.task.ID))
	}
	return strings.Join(append(facts, run), " · ")
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
	by     *reporter
	gh     *github.Client
	origin origin
}

// withReactions adds the reactions to a report if a comment requested the task.
func (r *reporter) withReactions(ctx context.Context, o origin, opened tasks.Report, err error) (tasks.Report, error) {
	if err != nil || len(o.spots()) == 0 {
		return opened, err
	}
	gh, err := r.api.client(ctx, o)
	if err != nil {
		return nil, r.api.reportError("reach "+o.String(), err)
	}
	return &reactingReport{Report: opened, by: r, gh: gh, origin: o}, nil
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
			a.by.log.Warn("react", "thread", "github/"+a.origin.String(), "comment", p.ID, "err", err)
		} else if err != nil {
			return statusLeft(a.by.api.reportError("react", err))
		}
	}
	return nil
}
