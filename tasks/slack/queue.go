package slack

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/tasks"
)

// queue shows a request that has to wait for others of its thread in the message that will show its run. One that the live run takes up
// does not wait.
func (s *Source) queue(ctx context.Context, t tasks.Task, r tasks.Receipt) {
	if r.Joins || r.Position == 0 {
		return
	}
	o, err := originOf(t)
	if err == nil {
		_, _, err = s.begin(ctx, o, t, waiting(r))
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("show waiting task", "run", t.ID, "thread", t.Thread, "err", err)
	}
}

// Waits shows why a request waits in the message that will show its run.
func (s *Source) Waits(ctx context.Context, t tasks.Task, text string) error {
	o, err := originOf(t)
	if err != nil {
		return err
	}
	v := view{state: "⏳ " + escape(quiet(line(text, maxSentence)))}
	d, posted, err := s.begin(ctx, o, t, v)
	if err != nil || posted {
		return err
	}
	return d.show(ctx, v, s.runButtons(t.ID))
}

// waiting is what is shown of a request that comes after others.
func waiting(r tasks.Receipt) view {
	if r.Position == 1 {
		return view{state: "⏳ Waiting: this comes next, after what I am at in this thread"}
	}
	return view{state: fmt.Sprintf("⏳ Waiting: %d requests of this thread come first", r.Position)}
}

// begin gives a task's status message, which it posts to show v if there is none.
func (s *Source) begin(ctx context.Context, o origin, t tasks.Task, v view) (d *display, posted bool, err error) {
	f, err := s.find(ctx, o, t)
	d = &display{source: s, origin: o, ts: f.shown(t.ID), log: s.log.With("run", t.ID, "thread", t.Thread)}
	if err != nil || d.ts != "" {
		return d, false, err
	}
	return d, true, d.post(ctx, statusMarker(t), v, s.runButtons(t.ID))
}
