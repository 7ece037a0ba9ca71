package github

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// reporter opens the reports of tasks. It is safe for concurrent use.
type reporter struct {
	shared
	board      Board // nil if no repository is only watched
	people     tasks.People
	consoleURL string
	pause      time.Duration // between two edits of an issue's state
}

// page returns where people see a task: the console, or the place of its answer. It is unique among a commit's tasks.
func (r *reporter) page(o subject.Origin, id string) string {
	if r.consoleURL != "" {
		return r.consoleURL + "/tasks/" + id
	}
	return o.URL + "#" + id
}

// report shows one task on GitHub. That of a review shows the agent's actions in the status indicator of the commit,
// and posts a comment when there is a result: one at the start would send mail without a result. Other tasks are
// answered by one comment at their end, where they were requested, because comments that are edited often do not help
// people who read them in their mail; on an issue, another comment shows the state. The result of a repository that is
// only watched goes to the board.
type report struct {
	thread.Thread
	o         subject.Origin
	by        *reporter
	task      tasks.Task
	log       *slog.Logger
	indicator hub.StatusIndicator // of a review
	progress  *latest             // what the indicator, or the comment with the state, shows; nil if there is none
}

// report returns the report of a task, which shows nothing yet.
func (r *reporter) report(ctx context.Context, t tasks.Task, o subject.Origin) (*report, error) {
	where, err := r.api.Reach(ctx, o.Ref)
	if err != nil {
		return nil, r.api.ReportError("reach "+o.String(), err)
	}
	return &report{Thread: where, o: o, by: r, task: t, log: r.api.Log.With("run", t.ID, "thread", t.Thread)}, nil
}

// open opens the report of a task. It finds or creates the status indicator of a review; if GitHub does not allow one,
// the report continues without. In a conversation nothing is posted before the agent starts.
func (r *reporter) open(ctx context.Context, t tasks.Task, o subject.Origin) (*report, error) {
	p, err := r.report(ctx, t, o)
	if err != nil || r.watched(o.Repo) {
		return p, err
	}
	if o.Issue != 0 {
		p.progress = showLatest(ctx, r.pause, p.log, p.showState)
	}
	if t.Kind != subject.KindReview {
		return p, nil
	}
	p.indicator, err = p.openIndicator(ctx)
	if hub.Permanent(err) {
		p.log.Warn("report without check", "err", err)
		p.indicator = hub.NoIndicator{}
	} else if err != nil {
		return nil, r.api.ReportError("open report", err)
	}
	p.progress = showLatest(ctx, p.indicator.Interval(), p.log, p.show)
	return p, nil
}

// openIndicator finds or creates the status indicator of a review.
func (r *report) openIndicator(ctx context.Context) (hub.StatusIndicator, error) {
	return r.Forge.OpenIndicator(ctx, r.GH, hub.IndicatorTarget{
		Repo: r.o.Repo, Commit: r.o.Head, Task: r.task.ID, URL: r.by.page(r.o, r.task.ID),
	})
}

func (r *report) show(ctx context.Context, action string) error {
	return showLine(ctx, r.indicator, action)
}

// showLine shows a text in an indicator, on one line.
func showLine(ctx context.Context, l hub.StatusIndicator, text string) error {
	return l.Show(ctx, markdown.NeutralLine(untrusted.Line(text, hub.MaxStatus)))
}

// Update shows in the indicator what the agent does, and on an issue that it works or waits for an answer.
func (r *report) Update(e agent.Event) {
	if r.progress == nil {
		return
	}
	text := stateOf(e)
	if r.indicator != nil {
		text = actionOf(e)
	}
	if text != "" {
		r.progress.put(text)
	}
}

// stateOf returns what an event says about the state of a task on an issue, or "".
func stateOf(e agent.Event) string {
	switch e.Kind {
	case agent.Started, tasks.Replied:
		return stateWorking
	case tasks.Asked:
		return stateAsking
	}
	return ""
}

// actionOf returns what an event says about the agent's actions in a review, or "".
func actionOf(e agent.Event) string {
	switch e.Kind {
	case agent.Started:
		return "The agent has started."
	case agent.ToolUse:
		return e.Text
	}
	return ""
}

// Close posts the result and shows it by reactions to the comments that requested the task.
func (r *report) Close(ctx context.Context, e tasks.Ending) error {
	if r.by.watched(r.o.Repo) {
		return r.tell(ctx, e)
	}
	if r.progress != nil {
		if err := r.progress.close(ctx); err != nil {
			return err
		}
	}
	post := r.closeConversation
	if r.task.Kind == subject.KindReview {
		post = r.closeReview
	}
	if err := post(ctx, e); err != nil {
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
	if isContinued(e) {
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

// foot returns the end of an answer, below a line: the facts about the run with a link to it.
func (r *report) foot(e tasks.Ending, facts ...string) string {
	if footer := e.Footer(); footer != "" {
		facts = append(facts, markdown.Unping(footer))
	}
	return addenda(e) + "\n\n---\n<sub>" + strings.Join(append(facts, r.runLink()), " · ") + "</sub>\n"
}

func (r *report) runLink() string {
	if r.by.consoleURL == "" {
		return "run " + r.task.ID
	}
	return fmt.Sprintf("[run %s](%s)", r.task.ID, r.by.page(r.o, r.task.ID))
}

// waits shows on the commit why a review waits, and on an issue why a task waits that has begun. Other tasks show
// nothing before they end.
func (r *reporter) waits(ctx context.Context, t tasks.Task, h tasks.Headline) error {
	o, err := subject.Of(t)
	text := h.Text(func(about string, at time.Time) string { return about + at.UTC().Format("15:04 UTC") })
	if err != nil || r.watched(o.Repo) || o.Issue == 0 && t.Kind != subject.KindReview {
		return err
	}
	p, err := r.report(ctx, t, o)
	if err != nil {
		return err
	}
	if o.Issue != 0 {
		return p.showState(ctx, stateWaiting+markdown.NeutralLine(untrusted.Line(text, 500)))
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
