package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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
		l.hosted.Go(func() { l.used(mail) })
		finished = l.attend()
		stopMail() // what the host has from now on is for another run
	}
	return finished, l.part(finished)
}

// part ends the session. The cause is what stopped it before it was finished.
func (l *live) part(finished bool) (cause error) {
	if finished {
		l.leave()
		return nil
	}
	select {
	case <-l.quiet: // it ended by itself, or in the moment in which it was to be stopped
	case <-l.ctx.Done():
		l.halt()
	}
	return context.Cause(l.ctx)
}

// greet tells the CLI what holds for the whole session. The greeting has an answer, so a CLI that hangs is found out here.
func (l *live) greet() (answer jsontext.Value, ok bool) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.r.startLimit, errStart)
	defer cancel()
	hello := map[string]any{"subtype": "initialize"}
	if l.spec.System != "" {
		hello["appendSystemPrompt"] = l.spec.System
	}
	if len(l.spec.Rules) > 0 {
		hello["hooks"] = everyCall()
	}
	if l.spec.Schema != nil {
		hello["jsonSchema"] = l.spec.Schema
	}
	if l.tools != nil {
		hello["sdkMcpServers"] = []string{hostServer}
	}
	answer, err := l.control.Request(ctx, hello)
	if err != nil {
		switch _, refused := errors.AsType[*controlError](err); {
		case ctx.Err() != nil:
			l.cancel(context.Cause(ctx))
		case refused:
			l.cancel(fmt.Errorf("%w: %w", errStart, err))
		default:
			l.deaf(err)
		}
		return nil, false
	}
	return answer, true
}

// open greets the CLI and hands it the context and the prompt.
func (l *live) open() bool {
	answer, ok := l.greet()
	if !ok {
		return false
	}
	l.known = knownTo(answer, l.spec.Profile)
	if err := l.known.check(l.spec.Prompt); err != nil {
		l.cancel(unfit{err})
		return false
	}
	if len(l.spec.History) > 0 && l.resume == nil && !l.say(flatten(l.spec.History), false) {
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

// send gives the agent a message to answer.
func (l *live) send(m Message) bool { return l.say(m, true) }

// say writes a message to the CLI.
func (l *live) say(m Message, query bool) bool {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	if m.Model != "" {
		l.gate.Allow(m.Model)
		l.adjust("set_model", "model", m.Model)
	}
	if m.Mode != "" && l.adjust("set_permission_mode", "mode", string(m.Mode)) {
		l.planning.Store(m.Mode == Plan)
	} else if m.Mode == Plan {
		l.cancel(fmt.Errorf("%w: it does not plan", errStart)) // rather than do what was only to be thought over
		return false
	}
	l.stream.Sent(m.ID)
	err := l.in.Send(m.line(query, l.known))
	if err != nil {
		l.deaf(err)
	}
	return err == nil
}

// adjust changes a setting of the session, and reports whether the CLI has obeyed.
func (l *live) adjust(subtype, key, value string) bool {
	ctx, cancel := context.WithTimeout(l.ctx, l.r.startLimit)
	defer cancel()
	_, err := l.control.Request(ctx, map[string]any{"subtype": subtype, key: value})
	if err != nil {
		l.log.Note(time.Now(), "! %v", err)
	}
	return err == nil
}

// mail passes on what the host has for the live run.
func (l *live) mail(ctx context.Context) {
	for {
		m, ok := l.host.Next(ctx)
		if !ok || l.fit(m) && !l.send(m) {
			return
		}
	}
}

// fit notes a message of the host that the CLI could not take.
func (l *live) fit(m Message) bool {
	err := cmp.Or(m.check(), l.known.check(m))
	if err != nil {
		l.log.Note(time.Now(), "! message left out: %v", err)
	}
	return err == nil
}
