// Package intake holds what every chat-like source needs between an incoming event and the desk: reading a bounded
// request body, signatures of programs, the commands stop, status, retry and help, pacing, the state of incoming
// events, throttled writers, and small caches and memos.
//
// It knows no product: a source decides who may do what, and converts the sentences from here to its own notation.
// The package does not authenticate people and does not post. The desk, not this package, looks for the question that a
// message answers.
//
// All types are safe for concurrent use unless their comment says otherwise.
package intake

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Inbound records the events and connections of a front door. The zero value is ready to use.
type Inbound struct {
	last, refused atomic.Int64 // in Unix nanoseconds; 0: never
	connections   atomic.Int32
	err           atomic.Pointer[error]
}

// Accepted records an event whose sender was authenticated.
func (i *Inbound) Accepted(at time.Time) { i.last.Store(at.UnixNano()) }

// Refused records a request with a wrong signature.
func (i *Inbound) Refused(at time.Time) { i.refused.Store(at.UnixNano()) }

// Connected counts a connection that events arrive on.
func (i *Inbound) Connected() { i.connections.Add(1) }

// Disconnected counts a connection that has ended.
func (i *Inbound) Disconnected() { i.connections.Add(-1) }

// ConnectionFailed records why a connection could not be made or has ended.
func (i *Inbound) ConnectionFailed(err error) { i.err.Store(&err) }

// Last returns when the last event was accepted; zero if none was.
func (i *Inbound) Last() time.Time {
	if last := i.last.Load(); last != 0 {
		return time.Unix(0, last)
	}
	return time.Time{}
}

// ConnectionErr returns the last connection error, or nil while there is a connection.
func (i *Inbound) ConnectionErr() error {
	if err := i.err.Load(); err != nil && i.connections.Load() <= 0 {
		return *err
	}
	return nil
}

// LastRefused reports whether the most recent request had a wrong signature.
func (i *Inbound) LastRefused() bool { return i.refused.Load() > i.last.Load() }

// RetryLimited repeats a call while it fails because of a rate limit, after the pauses that the service asks for.
// limited returns the pause that an error asks for. The pauses together last at most budget; each counts as a second at
// least, so that they come to an end.
func RetryLimited(
	ctx context.Context, budget time.Duration, limited func(error) (time.Duration, bool), call func() error,
) error {
	for {
		err := call()
		pause, ok := limited(err)
		if !ok {
			return err
		}
		if budget -= max(pause, time.Second); budget < 0 {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// ClockSkew returns how far now is ahead of the Date header of a response, in whole seconds; false if there is no such
// header.
func ClockSkew(h http.Header, now time.Time) (skew time.Duration, ok bool) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	return now.Sub(at).Round(time.Second), true
}
