package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/protocol"
)

// The CLI answers control requests within a millisecond, also while a tool runs or a model request is open (CLI
// 2.1.329) if it gets a processor. After a silence it is sent a ping; if it does not answer that in a minute, it hangs.
const (
	pingAfter = 30 * time.Second
	pingLimit = time.Minute
)

// watch supervises the session. It returns true when the session is finished, and false when the CLI has exited or must
// be stopped.
func (l *liveRun) watch() (finished bool) {
	request := &messageRequest{next: l.nextMessage, group: &l.hosted, answer: make(chan *Message, 1)}
	pinged := make(chan struct{}, 1)
	pinging := false
	timer, usage := time.NewTimer(0), time.NewTicker(l.r.usedEvery)
	defer timer.Stop()
	defer usage.Stop()
	for {
		select {
		case <-l.quiet:
			return false
		case <-l.ctx.Done():
			return false
		case <-l.idle:
			request.send()
		case m := <-request.answer:
			request.open = false
			if m == nil {
				if !l.working() {
					return l.ctx.Err() == nil
				}
				continue // it has got work meanwhile, and will become idle again
			}
			if !l.acceptable(*m) {
				request.send()
				continue
			}
			if !l.send(*m) {
				return false
			}
		case <-pinged:
			pinging, l.pinged = false, time.Now()
			timer.Reset(0)
		case <-usage.C:
			l.askUsage(usage)
		case <-timer.C:
			now := time.Now()
			at, alarm := l.nextAlarm(now, pinging)
			if wait := at.Sub(now); wait > 0 {
				timer.Reset(wait)
				continue
			}
			switch alarm {
			case noExit:
				request.send()
			case noWork:
				l.cancel(ErrStalled)
			case noOutput:
				pinging = true
				l.hosted.Go(func() { l.ping(); pinged <- struct{}{} })
			}
			timer.Reset(l.r.exitLimit)
		}
	}
}

// messageRequest gets the next message on a separate goroutine, because the host may take minutes. Only the
// goroutine of watch uses it.
type messageRequest struct {
	next   func() (Message, bool)
	group  *sync.WaitGroup // of the goroutine
	open   bool            // the answer has not been received
	answer chan *Message   // nil: there is no message; buffered, so that nothing waits for watch
}

// send sends the request, unless one is open.
func (r *messageRequest) send() {
	if r.open {
		return
	}
	r.open = true
	r.group.Go(func() {
		m, ok := r.next()
		if !ok {
			r.answer <- nil
			return
		}
		r.answer <- &m
	})
}

// nextMessage returns what an idle agent has to do next: to repeat an answer that lacks its form, or what the host
// wants.
func (l *liveRun) nextMessage() (Message, bool) {
	if l.spec.Schema != nil && !l.reminded && l.stream.Unstructured() {
		l.reminded, l.reminder = true, l.stream.Answers()
		return Message{Text: schemaReminder, Composed: true}, true
	}
	return l.host.Idle(l.ctx)
}

// schemaReminder is sent once to an agent that answered only in words, which the CLI counts as a success (CLI 2.1.329).
const schemaReminder = "Your answer is read by a program: give it again by calling the StructuredOutput " +
	"tool, with the same content."

// alarm is a condition on which the watchdog acts.
type alarm int

const (
	noWork   alarm = iota // no sign of work for too long
	noExit                // nothing followed the end of a turn: the CLI can hang (claude-code#25629, #39700)
	noOutput              // the CLI has written nothing for a while
)

// watchdog says how long a run may be silent.
type watchdog struct {
	exitLimit time.Duration // after the end of a turn
	idleLimit time.Duration // without a sign of work; 0: unlimited
	pingAfter time.Duration // without any output
}

// next returns the time of the next alarm. pinged is the time of the latest ping; if ping is unset, no further ping is
// due.
func (w watchdog) next(now time.Time, c protocol.Clock, pinged time.Time, ping bool) (time.Time, alarm) {
	if !c.Turn && !c.Ended.IsZero() && !c.Tool {
		return c.Ended.Add(w.exitLimit), noExit
	}
	at, what := now.Add(w.exitLimit), noWork
	if w.idleLimit > 0 {
		patience := w.idleLimit
		if c.Tool {
			patience *= 4 // builds and test suites are often silent
		}
		at = c.Active.Add(patience)
	}
	heard := c.Heard
	if pinged.After(heard) {
		heard = pinged
	}
	if due := heard.Add(w.pingAfter); ping && due.Before(at) {
		at, what = due, noOutput
	}
	return at, what
}

func (l *liveRun) nextAlarm(now time.Time, pinging bool) (time.Time, alarm) {
	asked := l.control.Open() > 0 // read first: an answer touches the clock before the request is closed
	c := l.stream.Clock()
	if asked {
		c.Active = now // the agent waits for the host, where a person may need minutes
	}
	return watchdog{l.r.exitLimit, l.spec.IdleLimit, l.r.pingAfter}.next(now, c, l.pinged, !pinging)
}

// working reports whether the agent has got something to do since it became idle: it has begun a turn, or a message is
// on its way. A message that the CLI has not taken within exitLimit will not be taken.
func (l *liveRun) working() bool {
	c, waiting := l.stream.Clock(), l.stream.Waiting()
	return c.Turn || waiting && time.Since(c.Ended) < l.r.exitLimit
}

// ping stops a CLI that does not answer. A CLI that writes anything meanwhile is alive, even if it only refuses the
// request.
func (l *liveRun) ping() {
	sent := time.Now()
	ctx, cancel := context.WithTimeout(l.ctx, l.r.pingLimit)
	defer cancel()
	_, err := l.control.Request(ctx, map[string]any{"subtype": "get_binary_version"})
	switch {
	case err == nil, refused(err), errors.Is(err, protocol.ErrGone), l.ctx.Err() != nil,
		!l.stream.Clock().Heard.Before(sent):
	case errors.Is(err, context.DeadlineExceeded):
		l.cancel(ErrStalled)
	default:
		l.stdinFailed(err)
	}
}

// usedEvery is how often errand requests the usage of a run. By itself it reports the usage only at the end of a
// turn, which can be hours away.
const usedEvery = 15 * time.Second

// askUsage asks the CLI for its usage if it has worked since the last time. The Stream reports the answer. It stops the
// ticker of a CLI that refuses.
func (l *liveRun) askUsage(tick *time.Ticker) {
	now := l.stream.Clock().Active
	if now.Equal(l.asked) {
		return
	}
	l.asked = now
	l.hosted.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, l.r.pingLimit) // watch stops a CLI that hangs
		defer cancel()
		if _, err := l.control.Request(ctx, map[string]any{"subtype": "get_usage"}); refused(err) {
			tick.Stop()
		}
	})
}
