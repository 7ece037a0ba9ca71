package agent

import (
	"context"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// leave ends a finished session: at the end of its input the CLI exits. One that does not is stopped; the answer stands.
func (l *live) leave() {
	l.in.Close()
	select {
	case <-l.quiet:
		return
	case <-time.After(l.r.exitLimit):
	case <-l.ctx.Done():
	}
	l.log.Note(time.Now(), "! the CLI did not exit after its session had ended; stopping it")
	l.child.Term(l.r.cfg.Grace * 3 / 5)
}

// halt is the stop ladder: interrupt, end_session, TERM, KILL. Each step leaves the CLI more of a chance to tidy up than the next;
// all of them together last Config.Grace.
func (l *live) halt() {
	l.log.Note(time.Now(), "! stopping: %v", context.Cause(l.ctx))
	grace := l.r.cfg.Grace
	l.step("interrupt", grace/5)
	l.step("end_session", grace/5)
	l.child.Term(grace * 3 / 5)
	l.in.Close()
}

// step asks the CLI to end and gives it a while to do so.
func (l *live) step(subtype string, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.in.Hurry(patience) // a write that the CLI does not read must not hold up the ladder
	// Without cancel_queued a message that waits would begin a turn of its own, and cost.
	if _, err := l.control.Request(ctx, map[string]any{"subtype": subtype, "cancel_queued": true}); err != nil {
		return // it does not listen, or is gone
	}
	if subtype == "interrupt" {
		select {
		case <-l.idle: // the turn is over: its last words are written
		case <-l.quiet:
		case <-ctx.Done():
		}
		return
	}
	select {
	case <-l.quiet:
	case <-ctx.Done():
	}
}

// wait returns when every process of the run is dead and all output is read.
func (l *live) wait() {
	l.r.waitAll(l.spec.ID, l.child, l.quiet, func(text string) { l.log.Note(time.Now(), "! %s", text) })
	l.cancel(nil)
	l.in.Close()
	l.hosted.Wait() // the host is not called any more once Run has returned
	l.control.Wait()
	if l.tools != nil {
		l.tools.Close()
	}
}

// waitAll returns when every process of a run is dead and quiet is closed, which means that all its output was read.
func (r *Runner) waitAll(id string, p *keeper.Process, quiet <-chan struct{}, note func(text string)) {
	p.WaitAll(id, r.cfg.Grace+r.keeperLimit, quiet, func() { note("the keeper does not end the CLI; killing both") })
	if p.Err != nil {
		r.log.Error("keeper died", "run", id, "swept", p.Exit.Swept, "err", p.Err)
	}
	if p.Exit.Stuck > 0 {
		r.log.Error("processes do not die", "run", id, "stuck", p.Exit.Stuck)
	}
}
