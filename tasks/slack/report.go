package slack

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// report tells of one task in its thread: by a status message that is edited, and by the final message.
type report struct {
	source *Source
	task   tasks.Task
	origin origin
	log    *slog.Logger

	progress *progress
	stop     context.CancelFunc
	done     chan struct{} // closed when no edit is under way any more
}

// Open finds the task's status message or posts it. Where Slack does not let us, the report goes on without.
func (s *Source) Open(ctx context.Context, t tasks.Task) (tasks.Report, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	r := &report{
		source: s, task: t, origin: o, log: s.log.With("run", t.ID, "thread", t.Thread),
		progress: newProgress(s.cfg.Now), done: make(chan struct{}),
	}
	stop, cancel := context.WithCancel(ctx)
	r.stop = cancel
	ts, shown, err := r.begin(ctx)
	if err != nil {
		r.log.Warn("report without status", "err", err)
		close(r.done)
		return r, nil
	}
	go func() {
		defer close(r.done)
		// The edits have ctx, not stop: one that was broken off could still arrive, after the last one.
		r.progress.keep(stop, shown, s.cfg.Interval, r.editor(ctx, ts))
	}()
	return r, nil
}

// begin gives the status message and what it shows, as far as that is known.
func (r *report) begin(ctx context.Context) (ts string, v view, err error) {
	f, err := r.source.find(ctx, r.origin, r.task)
	if err != nil || f.status != "" {
		return f.status, view{}, err
	}
	v = r.progress.view()
	ts, err = r.source.post(ctx, r.origin, statusMarker(r.task), v.message(r.buttons())...)
	return ts, v, err
}

// buttons are what can be done about a run.
func (r *report) buttons() []button {
	stop := button{text: "Stop", action: stopTask, value: r.task.ID, style: slack.StyleDanger}
	return append([]button{stop}, r.source.logButton(r.task.ID)...)
}

// editor writes the status and complains once.
func (r *report) editor(ctx context.Context, ts string) func(view) error {
	warned := false
	return func(v view) error {
		err := r.source.edit(ctx, r.origin, ts, v.message(r.buttons())...)
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			r.log.Warn("show progress", "err", err)
		}
		return err
	}
}

// Update shows what the agent does, now and then.
func (r *report) Update(e agent.Event) { r.progress.add(e) }

// Close posts what of the final message is not in the thread yet, in order, and then ends the status message. An error means that
// some of it may be missing.
func (r *report) Close(ctx context.Context, e tasks.Ending) error {
	r.stop()
	select {
	case <-r.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f, err := r.source.find(ctx, r.origin, r.task)
	if blind(err) {
		// Said twice, perhaps; not said at all, otherwise, after hours of work.
		r.log.Error("post ending without looking for an earlier one: the app lacks the scope channels:history or groups:history", "err", err)
		err = nil
	}
	for _, p := range r.source.parts(r.task, r.origin, e) {
		if err != nil {
			break
		}
		err = r.source.put(ctx, r.origin, f, p)
	}
	if gone(err) {
		r.log.Error("post ending: there is no place for it any more", "outcome", string(e.Kind), "err", err)
		return nil
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &tasks.ErrLater{At: r.source.cfg.Now().Add(limited.RetryAfter), Why: err.Error()}
	}
	if err != nil {
		return err
	}
	if f.status != "" {
		r.end(ctx, f.status, closing(e))
	}
	r.source.lookAway(ctx, r.origin)
	for _, id := range e.Covers {
		r.source.lookAway(ctx, r.origin.at(id))
	}
	return nil
}

// endWait is how long the end of a status message waits for Slack's limit on edits.
const endWait = 10 * time.Second

// end edits the status message for the last time. The final message is out, so that nothing depends on it; but one that says forever
// that the agent works is worth a second try, when it was only too many edits.
func (r *report) end(ctx context.Context, ts string, v view) {
	say := v.message(r.source.logButton(r.task.ID))
	if err := patiently(ctx, endWait, func() error { return r.source.edit(ctx, r.origin, ts, say...) }); err != nil {
		r.log.Warn("end status", "err", err)
	}
}
