package agent

import (
	"context"
	"errors"
	"time"
)

// Silence is broken by a ping: the CLI answers control requests within a millisecond, also in a tool or while it waits for the model
// (claude-cli.md §5). So one that does not answer hangs, whatever it was doing.
const (
	pingAfter = 30 * time.Second
	pingLimit = 10 * time.Second
)

// attend watches over the session until it is finished (true), or is over or has to be stopped (false).
func (l *live) attend() bool {
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
			m, more := l.more()
			answers <- answer{m, more}
		})
	}
	pinged := make(chan struct{}, 1)
	pinging := false
	watchdog := time.NewTimer(0)
	defer watchdog.Stop()
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
			switch {
			case !a.more && !l.working():
				return l.ctx.Err() == nil
			case !a.more: // it has got something to do meanwhile, and comes to rest again
			case !l.fit(a.m):
				ask()
			case !l.send(a.m):
				return false
			}
		case <-pinged:
			pinging, l.pinged = false, time.Now()
			watchdog.Reset(0)
		case <-watchdog.C:
			now := time.Now()
			at, due := l.deadline(now, pinging)
			if wait := at.Sub(now); wait > 0 {
				watchdog.Reset(wait)
				continue
			}
			switch due {
			case overdue:
				ask()
			case silent:
				l.cancel(ErrStalled)
			case unsure:
				pinging = true
				l.hosted.Go(func() { l.ping(); pinged <- struct{}{} })
			}
			watchdog.Reset(l.r.exitLimit)
		}
	}
}

// more asks whether there is anything left to say: first the runner itself, when an answer lacks the form it was to have.
func (l *live) more() (Message, bool) {
	if l.spec.Schema != nil && !l.reminded && l.stream.Unstructured() {
		l.reminded, l.words = true, l.stream.Answers()
		return Message{Text: remindSchema, Composed: true}, true
	}
	return l.host.Idle(l.ctx)
}

// remindSchema is said once to an agent that answered in words only. The CLI takes that for a success (claude-cli.md §3, --json-schema).
const remindSchema = "Your answer is read by a program: give it again by calling the StructuredOutput tool, with the same content."

// due is what the watchdog has to do.
type due int

const (
	silent  due = iota // nothing was heard of the agent for too long
	overdue            // a turn ended, and then nothing: the CLI is known to hang there (claude-code#25629, #39700)
	unsure             // nothing was heard of the CLI for a while
)

// deadline is when the watchdog has to act next, and on what.
func (l *live) deadline(now time.Time, pinging bool) (time.Time, due) {
	asked := l.control.Open() > 0 // looked at first: an answer touches the clock before the question is closed
	c := l.stream.Clock()
	if !c.Turn && !c.Ended.IsZero() && !c.Tool {
		return c.Ended.Add(l.r.exitLimit), overdue
	}
	// Silence of the host is none of the agent's: a person may take minutes over a question.
	if asked {
		c.Active = now
	}
	next, act := now.Add(l.r.exitLimit), silent
	if l.spec.IdleLimit > 0 {
		patience := l.spec.IdleLimit
		if c.Tool {
			patience *= 4 // builds and test suites are silent for long and legal
		}
		next = c.Active.Add(patience)
	}
	if ping := latest(c.Heard, l.pinged).Add(l.r.pingAfter); !pinging && ping.Before(next) {
		next, act = ping, unsure
	}
	return next, act
}

// working reports whether the agent has got something to do since it was at rest: a turn that it has begun, or a message on its way in. One
// that the CLI has not taken up for as long as it had to exit, it will not take up.
func (l *live) working() bool {
	c, waiting := l.stream.Clock(), l.stream.Waiting()
	return c.Turn || waiting && time.Since(c.Ended) < l.r.exitLimit
}

// ping stops a CLI that does not answer. One that says something meanwhile, if only that it does not know the question, is alive.
func (l *live) ping() {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(l.ctx, l.r.pingLimit)
	defer cancel()
	_, err := l.control.Request(ctx, map[string]any{"subtype": "get_binary_version"})
	_, answered := errors.AsType[*controlError](err)
	switch {
	case err == nil, answered, errors.Is(err, errGone), l.ctx.Err() != nil, !l.stream.Clock().Heard.Before(sent):
	case errors.Is(err, context.DeadlineExceeded):
		l.cancel(ErrStalled)
	default:
		l.deaf(err)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
