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
	shown := r.progress.view()
	show, posted, err := s.begin(ctx, o, t, shown)
	if err != nil {
		r.log.Warn("report without status", "err", err)
		close(r.done)
		return r, nil
	}
	if !posted {
		shown = view{} // nobody knows what it says
	}
	go func() {
		defer close(r.done)
		// The edits have ctx, not stop: one that was broken off could still arrive, after the last one.
		r.progress.keep(stop, shown, s.cfg.Interval, func(v view) error {
			err := show.show(ctx, v, r.source.runButtons(r.task.ID))
			show.complain(ctx, err)
			return err
		})
	}()
	return r, nil
}

func (r *report) display(ts string) *display {
	return &display{source: r.source, origin: r.origin, ts: ts, log: r.log}
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
	if e.Kind == tasks.Withdrawn {
		return r.takeBack(ctx, f, err)
	}
	if blind(err) {
		// Said twice, perhaps; not said at all, otherwise, after hours of work.
		r.log.Error("post ending without looking for an earlier one: the app lacks the scope channels:history or groups:history", "err", err)
		err = nil
	}
	if _, at, told := f.final(e.Retried); told && !at.Equal(e.At.Truncate(time.Microsecond)) {
		r.log.Warn("final message left out: the thread has one of an ending that Redis has forgotten", "ended", at)
	} else if err == nil && !e.Found {
		err = r.say(ctx, f, e)
	}
	if gone(err) {
		r.log.Error("post ending: there is no place for it any more", "outcome", string(e.Kind), "err", err)
		return nil
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &tasks.ErrLater{At: r.source.cfg.Now().Add(limited.RetryAfter), Why: slackLimit}
	}
	if err != nil {
		return err
	}
	r.source.lookAway(ctx, r.origin)
	r.end(ctx, f, r.task.ID, closing(e))
	for _, id := range e.Covers {
		r.source.lookAway(ctx, r.origin.at(id))
		r.end(ctx, f, id, closing(e)) // from when it had to wait
	}
	return nil
}

// say posts what of the final message is not there yet.
func (r *report) say(ctx context.Context, f found, e tasks.Ending) error {
	list, err := r.source.compose(ctx, r.origin, f, r.task, e)
	if err != nil {
		return err
	}
	for _, p := range list {
		if err := r.source.put(ctx, r.origin, f, p); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes what was said of a request that is not there any more. err is why we do not know what that is.
func (r *report) takeBack(ctx context.Context, f found, err error) error {
	if gone(err) || blind(err) {
		return nil
	}
	for _, ts := range f.status[r.task.ID] {
		if err == nil {
			err = r.source.remove(ctx, r.origin, ts)
		}
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return &tasks.ErrLater{At: r.source.cfg.Now().Add(limited.RetryAfter), Why: slackLimit}
	}
	return err
}

// end edits the status messages of a task for the last time: more than one if two processes began one at the same moment. The final message
// is out, so that nothing depends on it; but one that says forever that the agent works is worth a second try, when it was only too many
// edits, and does not wait for its turn for ever.
func (r *report) end(ctx context.Context, f found, id string, v view) {
	buttons := r.source.logButton(id)
	for _, ts := range f.status[id] {
		d := r.display(ts)
		r.source.lastTurn(ctx, r.origin)
		if err := patiently(ctx, endWait, func() error { return d.edit(ctx, v, buttons) }); err != nil {
			r.log.Warn("end status", "err", err)
		}
	}
}
