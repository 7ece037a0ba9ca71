package github

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// reporter opens the reports of tasks. It is safe for concurrent use.
type reporter struct {
	api        api
	gate       *gate
	settings   *settingsReader
	comments   *commenter
	memory     memory
	watched    func(repo string) bool
	board      Board // nil if no repository is only watched
	people     tasks.People
	consoleURL string
	pause      time.Duration // between two edits of an issue's state
	log        *slog.Logger
}

// page returns where people see a task: the console, or the place of its answer. It is unique among a commit's tasks.
func (r *reporter) page(o origin, id string) string {
	if r.consoleURL != "" {
		return r.consoleURL + "/tasks/" + id
	}
	return o.URL + "#" + id
}

// posting is what reports of a task have in common.
type posting struct {
	by     *reporter
	gh     *github.Client
	origin origin
	task   tasks.Task
	log    *slog.Logger
}

// reach returns the posting of a task.
func (r *reporter) reach(ctx context.Context, t tasks.Task, o origin) (posting, error) {
	gh, err := r.api.client(ctx, o)
	if err != nil {
		return posting{}, r.api.reportError("reach "+o.String(), err)
	}
	return posting{by: r, gh: gh, origin: o, task: t, log: r.log.With("run", t.ID, "thread", t.Thread)}, nil
}

// foot returns the end of an answer, below a line: the facts about the run with a link to it.
func (p posting) foot(e tasks.Ending, facts ...string) string {
	if footer := e.Footer(); footer != "" {
		facts = append(facts, markdown.Unping(footer))
	}
	return addenda(e) + "\n\n---\n<sub>" + strings.Join(append(facts, p.runLink()), " · ") + "</sub>\n"
}

func (p posting) runLink() string {
	if p.by.consoleURL == "" {
		return "run " + p.task.ID
	}
	return fmt.Sprintf("[run %s](%s)", p.task.ID, p.by.page(p.origin, p.task.ID))
}

// openIndicator finds or creates the status indicator of a review.
func (p posting) openIndicator(ctx context.Context) (hub.StatusIndicator, error) {
	return p.by.api.forge.OpenIndicator(ctx, p.gh, hub.IndicatorTarget{
		Repo: p.origin.Repo, Commit: p.origin.Head, Task: p.task.ID, URL: p.by.page(p.origin, p.task.ID),
	})
}

// report reports one review: by the status indicator of the commit while it runs, and by a comment when there is a
// result. A comment at the start would send mail without a result.
type report struct {
	posting
	indicator hub.StatusIndicator
	actions   *latest
}

// openReview finds or creates the task's status indicator. If GitHub does not allow one, the report continues without.
func (p posting) openReview(ctx context.Context) (tasks.Report, error) {
	l, err := p.openIndicator(ctx)
	if hub.Permanent(err) {
		p.log.Warn("report without check", "err", err)
		l = hub.NoIndicator{}
	} else if err != nil {
		return nil, p.by.api.reportError("open report", err)
	}
	return (&report{posting: p, indicator: l}).start(ctx), nil
}

// start starts the goroutine of a report.
func (r *report) start(ctx context.Context) *report {
	r.actions = showLatest(ctx, r.indicator.Interval(), r.log, r.show)
	return r
}

func (r *report) show(ctx context.Context, action string) error {
	return showLine(ctx, r.indicator, action)
}

// showLine shows a text in an indicator, on one line.
func showLine(ctx context.Context, l hub.StatusIndicator, text string) error {
	return l.Show(ctx, markdown.NeutralLine(untrusted.Line(text, hub.MaxStatus)))
}

// Update shows the agent's actions, at intervals.
func (r *report) Update(e agent.Event) {
	switch e.Kind {
	case agent.Started:
		r.actions.put("The agent has started.")
	case agent.ToolUse:
		r.actions.put(e.Text)
	}
}

// Close posts the findings, then the summary comment, and then completes the indicator, which links to them. So a
// complete indicator means that everything is posted, or that GitHub refuses it, which the indicator says. After any
// error the next attempt finds what this one has posted.
func (r *report) Close(ctx context.Context, e tasks.Ending) error {
	if err := r.actions.close(ctx); err != nil {
		return err
	}
	if e.Found {
		return nil
	}
	if at := r.indicator.Finished(); at.After(e.Retried) && at.Before(e.At.Truncate(time.Second)) {
		r.log.Warn("verdict skipped: one is posted for an ending that is missing in Redis", "ended", at)
		return nil
	}
	result, err := r.postFindings(ctx, e)
	if err != nil {
		return r.by.api.reportError("post findings", err)
	}
	failed := r.say(ctx, e, result)
	if failed != nil && !hub.Permanent(failed) {
		return failed
	}
	if failed != nil && e.Kind == tasks.Answered {
		result.verdict = verdictOf(tasks.Ending{
			Kind:   tasks.Failed,
			Reason: "GitHub does not let errand comment. The answer is in the run's log.", At: e.At,
		})
		result.verdict.State = hub.StatusError
	}
	if err := r.indicator.Finish(ctx, result.verdict); hub.Permanent(err) {
		r.log.Warn("end check", "err", err)
	} else if err != nil {
		return cmp.Or(failed, r.by.api.reportError("end report", err))
	}
	return failed
}

// say posts the summary comment and, after a refusal, the answer to the comment that requested the review.
func (r *report) say(ctx context.Context, e tasks.Ending, result outcome) error {
	if err := r.comment(ctx, result); err != nil {
		return r.by.api.unposted(ctx, r.origin, "post review", err)
	}
	return r.explainRefusal(ctx, e)
}

// explainRefusal answers the comment that requested a review, if it was refused: the check of a commit is not where its
// author looks.
func (r *report) explainRefusal(ctx context.Context, e tasks.Ending) error {
	if e.Kind != tasks.Refused || r.origin.Asked == nil {
		return nil
	}
	return (&reply{posting: r.posting}).post(ctx, e)
}

// postFindings posts the agent's findings on their lines, if any, and returns the content of the comment and indicator.
func (r *report) postFindings(ctx context.Context, e tasks.Ending) (outcome, error) {
	answer, ok := r.answer(e)
	if !ok {
		return r.recordTextOutcome(ctx, r.textOutcome(e))
	}
	var err error
	if r.origin, err = r.by.memory.asBriefed(ctx, r.task, r.origin); err != nil {
		return outcome{}, err
	}
	limits, unknown, err := r.limits(ctx)
	if err != nil {
		return outcome{}, err
	}
	ours := markOf(r.task, r.origin, e)
	plan, err := r.selectFindings(ctx, ours, answer)
	if err != nil {
		return outcome{}, err
	}
	plan, moved, err := r.post(ctx, plan, limits, ours)
	if hub.Permanent(err) {
		r.log.Error("post findings", "err", err) // the comment has all of them
	} else if err != nil {
		return outcome{}, err
	}
	result := r.findingsOutcome(e, plan, answer.Summary, moved)
	result.text += settingsErrors(unknown)
	if moved != "" {
		return result, nil // the next review reports the findings that still apply
	}
	state, err := r.remember(ctx, ours, plan, result.verdict)
	result.text += state.pausing()
	return result, err
}

// recordTextOutcome completes the outcome of a task without findings. A head that was refused because the same changes
// were reviewed keeps that verdict.
func (r *report) recordTextOutcome(ctx context.Context, result outcome) (outcome, error) {
	if !slices.Contains([]tasks.EndingKind{tasks.Answered, tasks.Refused, tasks.Withdrawn}, result.ending.Kind) {
		return result, nil
	}
	var err error
	if r.origin, err = r.by.memory.asBriefed(ctx, r.task, r.origin); err != nil {
		return outcome{}, err
	}
	if result.ending.Kind == tasks.Answered {
		state, err := r.by.memory.reviewed(ctx, r.task, r.origin, result.verdict)
		result.text += state.pausing()
		return result, err
	}
	state, err := r.by.memory.state(ctx, r.origin)
	if state.hasReviewed(r.origin) && state.Verdict != (savedVerdict{}) {
		result.verdict = state.Verdict.verdict(result.ending)
	}
	return result, err
}

// latest holds the newest text for a slow writer.
type latest struct {
	text    atomic.Pointer[string]
	changed chan struct{}
	stop    context.CancelFunc
	done    chan struct{} // closed when no write is running
}

// put never blocks.
func (l *latest) put(text string) {
	l.text.Store(&text)
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// close ends the writing, and waits for a write that is running.
func (l *latest) close(ctx context.Context) error {
	l.stop()
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// showLatest returns a latest whose texts show writes at intervals. The first failure is logged.
func showLatest(
	ctx context.Context, interval time.Duration, log *slog.Logger, show func(context.Context, string) error,
) *latest {
	stopped, stop := context.WithCancel(ctx)
	l := &latest{changed: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	l.text.Store(new(string))
	warned := false
	write := func(text string) (time.Duration, bool) {
		// The writes use ctx, not stopped: a cancelled one could still arrive, after the final text.
		err := show(ctx, text)
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			log.Warn("show progress", "err", err)
		}
		return interval, err == nil
	}
	go func() {
		defer close(l.done)
		value := func() string { return *l.text.Load() }
		intake.Throttle[string]{Value: value, Changed: l.changed, Write: write}.Run(stopped, "", 0)
	}()
	return l
}

// waits shows on the commit why a review waits, and on an issue why a task waits that has begun. Other tasks show
// nothing before they end.
func (r *reporter) waits(ctx context.Context, t tasks.Task, h tasks.Headline) error {
	o, err := originOf(t)
	text := h.Text(func(about string, at time.Time) string { return about + at.UTC().Format("15:04 UTC") })
	if err != nil || r.watched(o.Repo) || o.Issue == 0 && t.Kind != kindReview {
		return err
	}
	p, err := r.reach(ctx, t, o)
	if err != nil {
		return err
	}
	if o.Issue != 0 {
		return (&reply{posting: p}).showWait(ctx, text)
	}
	indicator, err := p.openIndicator(ctx)
	if err == nil {
		err = showLine(ctx, indicator, text)
	}
	if hub.Permanent(err) {
		return nil // GitHub allows no indicator; the report says so
	}
	return err
}

// savedVerdict is the part of a verdict that also holds for a later head with the same changes.
type savedVerdict struct {
	Conclusion string `json:"conclusion"`
	Title      string `json:"title"`
	Line       string `json:"line"`
}

func saveVerdict(v hub.Verdict) savedVerdict { return savedVerdict{v.Conclusion, v.Title, v.Line} }

// verdict returns the verdict for a later head whose review was refused because it has the same changes.
func (k savedVerdict) verdict(e tasks.Ending) hub.Verdict {
	return hub.Verdict{
		Conclusion: k.Conclusion, Title: k.Title, Line: k.Line,
		Summary: markdown.Unping(untrusted.Line(e.Sentence(), 500)), At: e.At,
	}
}

// verdictOf returns the verdict on an ending without findings.
func verdictOf(e tasks.Ending) hub.Verdict {
	v := hub.Verdict{Conclusion: conclusion(e.Kind), At: e.At}
	if e.Kind == tasks.Answered {
		v.Title, v.Line = "Reviewed", "Reviewed, see the conversation"
		v.Summary = "The review is in the conversation of the pull request.\n\n" + markdown.Unping(e.Footer())
		return v
	}
	v.Title, v.Line = "Not reviewed", "Not reviewed: "+markdown.Unping(untrusted.Line(e.Sentence(), 500))
	v.Summary = v.Line
	return v
}

// statusOf returns the state of a commit status for an ending. A commit without a review never looks like one that was
// reviewed, unless the repository's settings want no review. Where another task continues the review of the same head,
// the commit waits for that one; one of a later head needs nothing more.
func statusOf(e tasks.Ending, head string) string {
	switch {
	case e.Kind == tasks.Superseded && strings.HasPrefix(e.Reason, supersededBy+hub.ShortSHA(head)):
		return hub.StatusPending
	case e.Kind == tasks.Answered, e.Kind == tasks.Superseded, strings.HasPrefix(e.Reason, bySettings):
		return ""
	}
	return hub.StatusError
}

// conclusion returns the conclusion for an ending without findings. It is never one that GitHub counts as failed, such
// as timed_out: a problem of errand must not fail the change. It is not success
// either, which would mean that there is nothing to read.
func conclusion(k tasks.EndingKind) string {
	if k == tasks.Cancelled {
		return "cancelled"
	}
	return "neutral"
}
