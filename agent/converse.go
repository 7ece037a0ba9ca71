package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// converse holds the conversation until the session is over or must be stopped, and ends it. finished means that
// neither the agent nor the host had anything left; cause is what stopped the run before that.
func (l *liveRun) converse(ctx context.Context) (finished bool, cause error) {
	stop := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	defer stop()
	// A blocked write must not delay the steps of stop.
	hurry := context.AfterFunc(l.ctx, func() { l.in.SetWriteLimit(l.r.cfg.Grace / 5) })
	defer hurry()
	if l.spec.Limit > 0 {
		limit := time.AfterFunc(l.spec.Limit, func() { l.cancel(ErrLimit) })
		defer limit.Stop()
	}
	if l.begin() {
		ctx, stopSending := context.WithCancel(l.ctx)
		l.hosted.Go(func() { l.forwardMessages(ctx) })
		finished = l.watch()
		stopSending() // later messages of the host are for another run
		l.hangUp()
	}
	return finished, l.endSession(finished)
}

// begin initializes the CLI and sends it the history and the prompt. It returns false if the run cannot go on.
func (l *liveRun) begin() bool {
	answer, ok := l.initialize()
	if !ok {
		return false
	}
	l.answered = true
	l.disk.wait(l.r.diskPatience)
	l.known = readCallable(answer, l.spec)
	if err := l.known.check(l.spec.Prompt); err != nil {
		l.cancel(unfit{err})
		return false
	}
	if len(l.spec.History) > 0 && l.resume == nil && !l.write(flatten(l.spec.History), false) {
		return false
	}
	return l.send(l.spec.Prompt)
}

// startLimit is how long the CLI may take to answer for the first time.
func (l *liveRun) startLimit() time.Duration {
	if len(l.spec.Start) > 0 {
		return l.r.startLimit + servicesMax
	}
	return l.r.startLimit
}

// initialize sends the CLI the settings of the session. A CLI that does not answer is stopped.
func (l *liveRun) initialize() (answer jsontext.Value, ok bool) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.startLimit(), errStart)
	defer cancel()
	request := map[string]any{"subtype": "initialize", "hooks": l.hooks()}
	if system := l.spec.system(); system != "" {
		request["appendSystemPrompt"] = system
	}
	if l.spec.Schema != nil {
		request["jsonSchema"] = l.spec.Schema
	}
	if l.tools != nil {
		request["sdkMcpServers"] = []string{tools.ServerName}
	}
	answer, err := l.control.Request(ctx, request)
	switch {
	case err == nil:
		return answer, true
	case ctx.Err() != nil:
		l.cancel(context.Cause(ctx))
	case refused(err):
		l.cancel(fmt.Errorf("%w: %w", errStart, err))
	default:
		l.stdinFailed(err)
	}
	return nil, false
}

// send gives the agent a message to answer.
func (l *liveRun) send(m Message) bool { return l.write(m, true) }

// write writes a message to the CLI, after the changes of model and mode that it asks for. Without query the agent does
// not answer it.
func (l *liveRun) write(m Message, query bool) bool {
	m.ID = cmp.Or(m.ID, uuid.NewString())
	if m.Model != "" {
		l.gate.Allow(m.Model)
		l.set("set_model", "model", m.Model)
	}
	if m.Mode != "" && l.set("set_permission_mode", "mode", string(m.Mode)) {
		l.planning.Store(m.Mode == Plan)
	} else if m.Mode == Plan {
		l.cancel(fmt.Errorf("%w: it does not support plan mode", errStart)) // rather than carry out the plan
		return false
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.over {
		return false
	}
	l.stream.Sent(m.ID)
	err := l.in.Send(m.line(query, l.known))
	if err != nil {
		l.stdinFailed(err)
	}
	return err == nil
}

// hangUp makes later writes fail: after an interrupt a message would begin another turn.
func (l *liveRun) hangUp() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.over = true
}

// set changes a setting of the session, and reports whether the CLI accepted it.
func (l *liveRun) set(subtype, key, value string) bool {
	ctx, cancel := context.WithTimeout(l.ctx, l.r.startLimit)
	defer cancel()
	_, err := l.control.Request(ctx, map[string]any{"subtype": subtype, key: value})
	if err != nil {
		l.log.Note(time.Now(), "! %v", err)
	}
	return err == nil
}

// forwardMessages sends the host's messages for the live run.
func (l *liveRun) forwardMessages(ctx context.Context) {
	for {
		m, ok := l.host.Next(ctx)
		if !ok || l.acceptable(m) && !l.send(m) {
			return
		}
	}
}

// acceptable reports whether the CLI could take a message of the host. It notes a message that it could not.
func (l *liveRun) acceptable(m Message) bool {
	err := cmp.Or(m.check(), l.known.check(m))
	if err != nil {
		l.log.Note(time.Now(), "! message left out: %v", err)
	}
	return err == nil
}

// endSession ends the session. It returns the cause that stopped the session before it was finished.
func (l *liveRun) endSession(finished bool) (cause error) {
	if finished {
		l.closeStdin()
		return nil
	}
	select {
	case <-l.quiet: // the CLI exited by itself, perhaps just before it would have been stopped
	case <-l.ctx.Done():
		l.stop()
	}
	return context.Cause(l.ctx)
}

// closeStdin ends a finished session: the CLI exits at the end of its input. If it does not, it is stopped; the answer
// counts.
func (l *liveRun) closeStdin() {
	l.in.Close()
	select {
	case <-l.quiet:
		return
	case <-time.After(l.r.exitLimit):
		l.log.Note(time.Now(), "! the CLI did not exit within %s of the end of its session; stopping it", l.r.exitLimit)
	case <-l.ctx.Done():
		l.log.Note(time.Now(), "! stopping while the CLI exits: %v", context.Cause(l.ctx))
	}
	l.process.Term(l.r.cfg.Grace * 3 / 5)
}

// stop stops the CLI in steps: interrupt, end_session, TERM, KILL. Each step leaves the CLI less opportunity to clean
// up than the one before it. All steps together take at most Config.Grace.
func (l *liveRun) stop() {
	l.log.Note(time.Now(), "! stopping: %v", context.Cause(l.ctx))
	l.stream.Stop()
	grace := l.r.cfg.Grace
	if l.answered { // before that there is no turn to interrupt, and no answer to wait for
		l.requestEnd("interrupt", l.idle, grace/5) // idle: the turn is over, and its last words are written
		l.requestEnd("end_session", nil, grace/5)
	}
	l.process.Term(grace * 3 / 5)
	l.in.Close()
}

// requestEnd sends the CLI a request to end, and waits for the end of its output or for done.
func (l *liveRun) requestEnd(subtype string, done <-chan struct{}, limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	l.in.SetWriteLimit(limit) // a CLI that does not read must not delay the next step
	// Without cancel_queued a waiting message would begin a turn, which costs money.
	if _, err := l.control.Request(ctx, map[string]any{"subtype": subtype, "cancel_queued": true}); err != nil {
		return // the CLI does not answer, or has exited
	}
	select {
	case <-done:
	case <-l.quiet:
	case <-ctx.Done():
	}
}

// wait returns when every process of the run is dead, all output is read, and no call of the host is under way.
func (l *liveRun) wait() {
	l.r.waitAll(l.id, l.process, l.quiet, func(text string) { l.log.Note(time.Now(), "! %s", text) })
	l.cancel(nil)
	l.in.Close()
	l.hosted.Wait()
	l.control.Wait()
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
