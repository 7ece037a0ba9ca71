package github

import (
	"context"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/people"
)

// A report shows one task on GitHub. That of a review shows the agent's actions in the status indicator of the commit,
// and posts a comment when there is a result: one at the start would send mail without a result. Other tasks are
// answered by one comment at their end, where they were requested, because comments that are edited often do not help
// people who read them in their mail; on an issue, another comment shows the state. The result of a repository that is
// only watched goes to the board.

// shown is what a kind of task shows. There is one for reviews, one for answers in a conversation, and one for issues.
type shown interface {
	// Start shows that the task is worked on, if anything is shown before it ends.
	Start(ctx context.Context) error
	Update(e agent.Event)
	// Close posts the result. It may be called again after an error, and finds what it has posted.
	Close(ctx context.Context, e tasks.Ending) error
	// Final finds the final message of an ending after that time, or returns nil.
	Final(ctx context.Context, after time.Time) (*tasks.Ending, error)
	// Wait shows why the task waits.
	Wait(ctx context.Context, why string) error
	// Notice completes a notice for the board. silent means that none is posted.
	Notice(ctx context.Context, n tasks.Notice) (_ tasks.Notice, silent bool, err error)
}

var (
	_ shown = (*review.Report)(nil)
	_ shown = (*answer)(nil)
	_ shown = (*issueAnswer)(nil)
)

// reporter opens the reports of tasks. It is safe for concurrent use.
type reporter struct {
	shared
	board  Board // nil if no repository is only watched
	people people.People
	pause  time.Duration // between two edits of an issue's state
}

// report is the report of one task.
type report struct {
	shown
	thread.Thread
	o    subject.Origin
	by   *reporter
	task tasks.Task
	log  *slog.Logger
}

// report returns the report of a task, which shows nothing yet.
func (r *reporter) report(ctx context.Context, t tasks.Task, o subject.Origin) (*report, error) {
	where, err := r.api.Reach(ctx, o.Ref)
	if err != nil {
		return nil, r.api.ReportError("reach "+o.String(), err)
	}
	p := &report{Thread: where, o: o, by: r, task: t, log: r.api.Log.With("run", t.ID, "thread", t.Thread)}
	if t.Kind == subject.KindReview {
		p.shown = r.reviews.Report(where, t, o)
	} else if o.Issue != 0 {
		p.shown = &issueAnswer{answer: p.answer()}
	} else {
		p.shown = p.answer()
	}
	return p, nil
}

func (r *report) answer() *answer {
	return &answer{Thread: r.Thread, o: r.o, by: r.by, task: r.task, log: r.log}
}

// explain answers the comment that requested a task in its conversation, whatever the kind of task.
func (r *reporter) explain(ctx context.Context, t tasks.Task, o subject.Origin, e tasks.Ending) error {
	p, err := r.report(ctx, t, o)
	if err != nil {
		return err
	}
	return p.answer().answerRequest(ctx, e)
}

// open opens the report of a task. In a conversation nothing is posted before the agent starts.
func (r *reporter) open(ctx context.Context, t tasks.Task, o subject.Origin) (*report, error) {
	p, err := r.report(ctx, t, o)
	if err != nil || r.watched(o.Repo) {
		return p, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Update shows what the agent does, but nothing of a repository that is only watched.
func (r *report) Update(e agent.Event) {
	if !r.by.watched(r.o.Repo) {
		r.shown.Update(e)
	}
}

// Close posts the result and shows it by reactions to the comments that requested the task.
func (r *report) Close(ctx context.Context, e tasks.Ending) error {
	if r.by.watched(r.o.Repo) {
		return r.tell(ctx, e)
	}
	if err := r.shown.Close(ctx, e); err != nil {
		return err
	}
	return r.reactToRequests(ctx, e)
}

// reactToRequests adds the reactions. It skips deleted comments and those that another task answers now.
func (r *report) reactToRequests(ctx context.Context, e tasks.Ending) error {
	spots := r.o.Spots()
	if e.Kind == tasks.Withdrawn || len(spots) == 0 {
		return nil
	}
	if review.IsContinued(e) {
		spots = nil
	}
	for _, id := range e.Covers {
		if p, ok := thread.SpotOf(id); ok {
			spots = append(spots, p)
		}
	}
	for _, p := range spots {
		err := r.React(ctx, p, resultReaction(e.Kind == tasks.Answered))
		if hub.Permanent(err) {
			r.log.Warn("react", "comment", p.ID, "err", err)
		} else if err != nil {
			return statusLeft(r.ReportError("react", err))
		}
	}
	return nil
}

func (r *reporter) showsWait(t tasks.Task) bool {
	o, err := subject.Of(t)
	return err == nil && !r.watched(o.Repo) && (o.Issue != 0 || t.Kind == subject.KindReview)
}

// waits shows on the commit why a review waits, and on an issue why a task waits that has begun. Other tasks show
// nothing before they end.
func (r *reporter) waits(ctx context.Context, t tasks.Task, h tasks.Headline) error {
	o, err := subject.Of(t)
	if err != nil || !r.showsWait(t) {
		return err
	}
	p, err := r.report(ctx, t, o)
	if err != nil {
		return err
	}
	return p.Wait(ctx, h.Text(func(about string, at time.Time) string {
		return about + at.UTC().Format("15:04 UTC")
	}))
}
