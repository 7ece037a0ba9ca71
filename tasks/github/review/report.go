package review

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Report shows a review on GitHub.
type Report struct {
	thread.Thread
	o         subject.Origin
	by        *Reviews
	task      tasks.Task
	log       *slog.Logger
	indicator hub.StatusIndicator
	progress  *thread.Latest // what the indicator shows
}

// Report returns the report of a review, which shows nothing yet.
func (r *Reviews) Report(where thread.Thread, t tasks.Task, o subject.Origin) *Report {
	log := where.Log.With("run", t.ID, "thread", t.Thread)
	return &Report{Thread: where, o: o, by: r, task: t, log: log}
}

// Start finds or creates the status indicator. If GitHub does not allow one, the report continues without.
func (r *Report) Start(ctx context.Context) (err error) {
	r.indicator, err = r.openIndicator(ctx)
	if hub.Permanent(err) {
		r.log.Warn("report without check", "err", err)
		r.indicator = hub.NoIndicator{}
	} else if err != nil {
		return r.ReportError("open report", err)
	}
	r.progress = thread.ShowLatest(ctx, r.indicator.Interval(), r.log, r.show)
	return nil
}

// openIndicator finds or creates the status indicator of a review.
func (r *Report) openIndicator(ctx context.Context) (hub.StatusIndicator, error) {
	return r.Forge.OpenIndicator(ctx, r.GH, hub.IndicatorTarget{
		Repo: r.o.Repo, Commit: r.o.Head, Task: r.task.ID, URL: r.RunPage(r.o.URL, r.task.ID),
	})
}

func (r *Report) show(ctx context.Context, action string) error {
	return showLine(ctx, r.indicator, action)
}

// showLine shows a text in an indicator, on one line.
func showLine(ctx context.Context, l hub.StatusIndicator, text string) error {
	return l.Show(ctx, markdown.NeutralLine(untrusted.Line(text, hub.MaxStatus)))
}

// Update shows in the indicator what the agent does.
func (r *Report) Update(e agent.Event) {
	if text := actionOf(e); text != "" {
		r.progress.Put(text)
	}
}

// actionOf returns what an event says about the agent's actions in a review, or "".
func actionOf(e agent.Event) string {
	switch e.Kind {
	case agent.Started:
		return "The agent has started."
	case agent.ToolUse:
		return e.Text
	case agent.Notice: // others are for the log
		if strings.HasPrefix(e.Text, checking) {
			return e.Text
		}
	}
	return ""
}

// Wait shows in the indicator why the review waits. If GitHub allows no indicator, the report says so.
func (r *Report) Wait(ctx context.Context, why string) error {
	indicator, err := r.openIndicator(ctx)
	if hub.Permanent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := showLine(ctx, indicator, why); !hub.Permanent(err) {
		return err
	}
	return nil
}

// Close ends the showing of actions, and posts the result.
func (r *Report) Close(ctx context.Context, e tasks.Ending) error {
	if err := r.progress.Close(ctx); err != nil {
		return err
	}
	return r.post(ctx, e)
}

// post posts the findings, then the summary comment, and then completes the indicator, which links to them. So a
// complete indicator means that everything is posted, or that GitHub refuses it, which the indicator says. After any
// error the next attempt finds what this one has posted.
func (r *Report) post(ctx context.Context, e tasks.Ending) error {
	if e.Found {
		return nil
	}
	if at := r.indicator.Finished(); at.After(e.Retried) && at.Before(e.At.Truncate(time.Second)) {
		r.log.Warn("verdict skipped: one is posted for an ending that is missing in Redis", "ended", at)
		return nil
	}
	result, err := r.postFindings(ctx, e)
	if err != nil {
		return r.ReportError("post findings", err)
	}
	refused := r.say(ctx, e, result)
	if refused != nil && !hub.Permanent(refused) {
		return refused
	}
	if refused != nil && e.Kind == tasks.Answered {
		result.verdict = unpostedVerdict(e)
	}
	if err := r.finish(ctx, result.verdict); err != nil {
		return cmp.Or(refused, err)
	}
	return refused
}

// finish completes the indicator, unless GitHub refuses that.
func (r *Report) finish(ctx context.Context, v hub.Verdict) error {
	err := r.indicator.Finish(ctx, v)
	if hub.Permanent(err) {
		r.log.Warn("end check", "err", err)
		return nil
	}
	if err != nil {
		return r.ReportError("end report", err)
	}
	return nil
}

// say posts the summary comment and, after a refusal, the answer to the comment that requested the review.
func (r *Report) say(ctx context.Context, e tasks.Ending, result outcome) error {
	if err := r.comment(ctx, result); err != nil {
		return r.Unposted(ctx, "post review", err)
	}
	return r.explainRefusal(ctx, e)
}

// explainRefusal answers the comment that requested a review, if it was refused: the check of a commit is not where its
// author looks.
func (r *Report) explainRefusal(ctx context.Context, e tasks.Ending) error {
	if e.Kind != tasks.Refused || r.o.Asked == nil {
		return nil
	}
	return r.by.explain(ctx, r.task, r.o, e)
}

// postFindings posts the agent's findings on their lines, if any, and returns the content of the comment and indicator.
func (r *Report) postFindings(ctx context.Context, e tasks.Ending) (outcome, error) {
	answer, ok := r.found(e)
	if !ok {
		return r.recordTextOutcome(ctx, r.textOutcome(e))
	}
	var err error
	if r.o, err = r.by.memory.asBriefed(ctx, r.task, r.o); err != nil {
		return outcome{}, err
	}
	limits, wrong, err := r.limits(ctx)
	if err != nil {
		return outcome{}, err
	}
	ours := markOf(r.task, r.o, e)
	plan, err := r.selectFindings(ctx, ours, answer)
	if err != nil {
		return outcome{}, err
	}
	plan, moved, err := r.postPlan(ctx, plan, limits, ours)
	if hub.Permanent(err) {
		r.log.Error("post findings", "err", err) // the comment has all of them
	} else if err != nil {
		return outcome{}, err
	}
	result := r.findingsOutcome(e, plan, answer.Summary, moved)
	result.text += wrong
	if moved != "" {
		return result, nil // the next review reports the findings that still apply
	}
	state, err := r.remember(ctx, ours, plan, result.verdict)
	result.text += pausing(state)
	return result, err
}

// recordTextOutcome completes the outcome of a task without findings. A head that was refused because the same changes
// were reviewed keeps that verdict.
func (r *Report) recordTextOutcome(ctx context.Context, result outcome) (outcome, error) {
	if !slices.Contains([]tasks.EndingKind{tasks.Answered, tasks.Refused, tasks.Withdrawn}, result.ending.Kind) {
		return result, nil
	}
	var err error
	if r.o, err = r.by.memory.asBriefed(ctx, r.task, r.o); err != nil {
		return outcome{}, err
	}
	if result.ending.Kind == tasks.Answered {
		state, err := r.by.memory.reviewed(ctx, r.task, r.o, result.verdict)
		result.text += pausing(state)
		return result, err
	}
	state, err := r.by.memory.State(ctx, r.o.Ref)
	if state.HasReviewed(r.o) && state.Verdict.Conclusion != "" {
		result.verdict = keptVerdict(state.Verdict, result.ending)
	}
	return result, err
}

// Final finds the final message of a review: its comment, or its indicator if that is complete, because a later
// review has replaced its comment, or it had none.
func (r *Report) Final(ctx context.Context, after time.Time) (*tasks.Ending, error) {
	all, err := r.summaries(ctx)
	if err != nil {
		return nil, err
	}
	if m := all[1].mark; m.task == r.task.ID && time.UnixMicro(m.at).After(after) {
		return &tasks.Ending{Kind: m.ending, At: time.UnixMicro(m.at).UTC()}, nil
	}
	l, err := r.openIndicator(ctx)
	if err != nil {
		return nil, err
	}
	if at := l.Finished(); at.After(after) {
		return &tasks.Ending{At: at.UTC()}, nil
	}
	return nil, nil
}
