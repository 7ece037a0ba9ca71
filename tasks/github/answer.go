package github

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// answer is the answer to a request in the conversation of a pull request. Nothing is shown before it.
type answer struct {
	thread.Thread
	o    subject.Origin
	by   *reporter
	task tasks.Task
	log  *slog.Logger
}

// Start does nothing.
func (r *answer) Start(context.Context) error { return nil }

// Update does nothing.
func (r *answer) Update(agent.Event) {}

// Wait does nothing.
func (r *answer) Wait(context.Context, string) error { return nil }

// Close posts the answer.
func (r *answer) Close(ctx context.Context, e tasks.Ending) error { return r.answerRequest(ctx, e) }

// statusLeft is the error of ending the status beside an answer that is posted.
func statusLeft(err error) error {
	if err == nil {
		return nil
	}
	return &tasks.UnpostedError{Why: "GitHub does not answer as expected", Shown: true, Err: err}
}

// answerRequest posts the answer, unless there is none.
func (r *answer) answerRequest(ctx context.Context, e tasks.Ending) error {
	stranger, silent, err := r.silent(ctx, e)
	if err != nil {
		return err
	}
	if err := r.by.memory.PlanEnded(ctx, r.task, r.o.Ref, e); err != nil || silent {
		return err
	}
	if stranger {
		e.Reason = noWork
	}
	m := r.finalMessage(e.Retried)
	m.What, m.At = string(e.Kind), e.At.UnixMicro()
	if r.severalPlaces(e) {
		m.To = thread.Spot{}
	}
	if !e.Found {
		m.Parts = r.answerParts(e)
	}
	if err := r.Send(ctx, m); err != nil {
		return r.Unposted(ctx, "post reply", err)
	}
	if e.Kind != tasks.Answered || r.o.Asked == nil {
		return nil
	}
	last, at := r.o.Asked.Spot, r.o.Asked.At
	for _, id := range e.Covers {
		if p, ok := thread.SpotOf(id); ok && thread.AskedAt(id).After(at) {
			last, at = p, thread.AskedAt(id)
		}
	}
	return r.by.memory.Answered(ctx, r.o.Ref, last, at)
}

// silent reports whether there is no reply: to a withdrawn request, to one on an issue that has ended since, and to
// people without permission, who get one answer on each pull request or issue.
func (r *answer) silent(ctx context.Context, e tasks.Ending) (stranger, silent bool, _ error) {
	if subject.IsAutomatic(r.task, r.o) || r.o.ByBot() {
		return false, endsSilently(e), nil
	}
	if e.Kind != tasks.Refused {
		return false, e.Kind == tasks.Withdrawn || e.Kind == tasks.Superseded, nil
	}
	v, err := r.by.gate.MayRequest(ctx, r.o.Ref, r.task.Actor)
	if err != nil || v.Allowed {
		return false, false, err
	}
	first, err := r.by.memory.FirstStranger(ctx, r.o.Ref)
	return true, !first, err
}

// severalPlaces reports whether the task answers requests from several places, whose readers do not see each other.
func (r *answer) severalPlaces(e tasks.Ending) bool {
	return slices.ContainsFunc(e.Covers, func(id string) bool {
		p, ok := thread.SpotOf(id)
		return ok && r.o.Asked != nil && p.Thread != r.o.Asked.Thread
	})
}

// finalMessage returns the answer without its parts, where the task was requested. An answer of an ending after that
// time prevents posting.
func (r *answer) finalMessage(after time.Time) thread.Message {
	m := thread.Message{Task: r.task.ID, After: after}
	if a := r.o.Asked; a != nil {
		m.To, m.Since = a.Spot, a.At
	}
	return m
}

// Final finds the answer of an ending after that time.
func (r *answer) Final(ctx context.Context, after time.Time) (*tasks.Ending, error) {
	return r.FindFinal(ctx, r.finalMessage(after))
}

// answerParts returns the parts of the answer.
func (r *answer) answerParts(e tasks.Ending) []string {
	foot := r.Foot(r.task.ID, e, r.inReplyTo(e)...)
	if r.task.Options.Plan && e.Kind == tasks.Answered {
		foot = "\n\n" + howToApprove + foot
	}
	const head = 512 // room for the mark
	parts := markdown.Parts(thread.Text(e), hub.MaxComment-head-len(foot), markdown.Bytes)
	for i := range parts {
		if len(parts) > 1 {
			parts[i] = fmt.Sprintf("**(%d of %d)**\n\n%s", i+1, len(parts), parts[i])
		}
	}
	parts[len(parts)-1] += foot
	return parts
}

// inReplyTo returns a link to the request, if the answer is not below it.
func (r *answer) inReplyTo(e tasks.Ending) []string {
	a := r.o.Asked
	if a == nil || a.Place == thread.OnLine || a.URL == "" {
		return nil
	}
	more := ""
	if n := len(e.Covers); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return []string{fmt.Sprintf("In reply to [%s](%s)%s", markdown.Unping(r.task.Actor), a.URL, more)}
}

// endsSilently reports whether the ending of an automatic task is not posted, because there was nothing to do. The
// message that the limit is reached is posted.
func endsSilently(e tasks.Ending) bool {
	nothing := slices.Contains([]tasks.EndingKind{tasks.Refused, tasks.Superseded, tasks.Withdrawn}, e.Kind)
	return nothing && e.Reason != subject.LimitReached
}
