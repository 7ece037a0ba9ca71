package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// converse holds the conversation until the session is over or has to be stopped, and stops it. finished means that the agent had
// nothing left to do and nobody had anything left to say; cause is what stopped the run before that.
func (l *live) converse(ctx context.Context) (finished bool, cause error) {
	stop := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	defer stop()
	// A write that the CLI does not take must not keep us from the ladder.
	hurry := context.AfterFunc(l.ctx, func() { l.in.Hurry(l.r.cfg.Grace / 5) })
	defer hurry()
	if l.spec.Limit > 0 {
		limit := time.AfterFunc(l.spec.Limit, func() { l.cancel(ErrLimit) })
		defer limit.Stop()
	}
	if l.open() {
		mail, stopMail := context.WithCancel(l.ctx)
		l.hosted.Go(func() { l.mail(mail) })
		finished = l.attend()
		stopMail() // what the host has from now on is for another run
	}
	if finished {
		l.leave()
		return true, nil
	}
	select {
	case <-l.quiet:
		return false, context.Cause(l.ctx) // it ended by itself, or in the moment in which it was to be stopped
	case <-l.ctx.Done():
	}
	l.halt()
	return false, context.Cause(l.ctx)
}

// open greets the CLI, hands it the context and the prompt. The greeting has an answer, so a CLI that hangs is found out here.
func (l *live) open() bool {
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.r.startLimit, errStart)
	defer cancel()
	hello := map[string]any{"subtype": "initialize"}
	if l.spec.System != "" {
		hello["appendSystemPrompt"] = l.spec.System
	}
	if len(l.spec.Rules) > 0 {
		hello["hooks"] = everyCall()
	}
	if _, err := l.control.Request(ctx, hello); err != nil {
		switch _, refused := errors.AsType[*controlError](err); {
		case ctx.Err() != nil:
			l.cancel(context.Cause(ctx))
		case refused:
			l.cancel(fmt.Errorf("%w: %w", errStart, err))
		default:
			l.deaf(err)
		}
		return false
	}
	return l.send(l.spec.Prompt)
}

// deafPatience is how long a CLI that does not take its input has to be found dead, which is the usual reason.
const deafPatience = 2 * time.Second

// deaf stops a CLI that does not take its input, unless it turns out to be dead.
func (l *live) deaf(err error) {
	time.AfterFunc(deafPatience, func() { l.cancel(fmt.Errorf("%w: %w", errDeaf, err)) })
}

// send gives the agent a message.
func (l *live) send(m Message) bool {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	l.stream.Begin()
	err := l.in.Send(userLine(m))
	if err != nil {
		l.deaf(err)
	}
	return err == nil
}

// mail passes on what the host has for the live run.
func (l *live) mail(ctx context.Context) {
	for {
		m, ok := l.host.Next(ctx)
		if !ok || !l.send(m) {
			return
		}
	}
}

// attend watches over the session until it is finished (true), or is over or has to be stopped (false).
func (l *live) attend() bool {
	watchdog := time.NewTimer(0)
	defer watchdog.Stop()
	type answer struct {
		m    Message
		more bool
	}
	answers := make(chan answer, 1)
	asking := false
	ask := func() {
		if asking {
			return
		}
		asking = true
		l.hosted.Go(func() {
			m, more := l.host.Idle(l.ctx)
			answers <- answer{m, more}
		})
	}
	for {
		select {
		case <-l.quiet:
			return false
		case <-l.ctx.Done():
			return false
		case <-l.idle:
			ask()
		case a := <-answers:
			asking = false
			if !a.more {
				return l.ctx.Err() == nil
			}
			if !l.send(a.m) {
				return false
			}
		case <-watchdog.C:
			next, silent := l.deadline()
			switch wait := time.Until(next); {
			case wait > 0:
				watchdog.Reset(wait)
				continue
			case silent:
				l.cancel(ErrStalled)
				continue
			default: // a result, and then nothing: the CLI is known to hang there (claude-code#25629, #39700)
				ask()
			}
			watchdog.Reset(l.r.exitLimit)
		}
	}
}

// deadline is when the watchdog has to act next: on silence, or on an end of turn that was not followed by the session's idling.
func (l *live) deadline() (next time.Time, silent bool) {
	asked := l.control.Open() > 0 // looked at first: an answer touches the clock before the question is closed
	active, toolOpen, turnOpen, ended := l.stream.Clock()
	if !turnOpen && !ended.IsZero() {
		return ended.Add(l.r.exitLimit), false
	}
	if l.spec.IdleLimit <= 0 {
		return time.Now().Add(l.r.exitLimit), true
	}
	if asked { // whoever decides, or does a call for the CLI, may take minutes; the agent cannot go on before
		active = time.Now()
	}
	patience := l.spec.IdleLimit
	if toolOpen {
		patience *= 4 // builds and test suites are silent for long and legal
	}
	return active.Add(patience), true
}
