package assemble

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
)

const (
	// outageOver is how long no request may have failed before an outage is over: longer than between two heartbeats of
	// a worker and two probes of a front door, because a Redis that refuses writes still answers reads.
	outageOver = 20 * time.Second
	// outageRemind is how often a message is logged during an outage. Loops fail each second or two.
	outageRemind = time.Minute
)

// outage logs when Redis can no longer be used and when it can again, and makes the log readable in between. It is safe
// for concurrent use.
type outage struct {
	log     *slog.Logger
	explain func(error) (what, remedy string)
	on      atomic.Bool // successful requests must cost nothing while all is well

	mu          sync.Mutex
	first, last time.Time // failures
	failures    int
	lines       map[string]held // by message
}

// held is a message of an outage.
type held struct {
	logged  time.Time
	skipped int // since then
}

// failed notes why Redis cannot be used.
func (o *outage) failed(err error) {
	msg := "redis does not answer"
	what, remedy := o.explain(err)
	if strings.HasPrefix(what, "Redis refuses writes") {
		msg = "redis refuses writes"
	}
	o.mu.Lock()
	now := time.Now()
	if !o.on.Swap(true) {
		o.first, o.failures, o.lines = now, 0, map[string]held{}
	}
	o.last = now
	o.failures++
	n := o.failures
	o.mu.Unlock()
	if _, ok := o.admit(what); ok {
		o.log.Warn(msg, "why", what, "err", err, "remedy", remedy, "failures", n) //nolint:sloglint // one of two
	}
}

// completed notes the result of a request, after go-redis' second attempt. A late one, whose context had ended before,
// did not ask Redis.
func (o *outage) completed(err error, late bool) {
	if !late && isFault(err) {
		o.failed(err)
	}
}

// replied notes the result of one attempt of a request.
func (o *outage) replied(err error) {
	_, reply := errors.AsType[redis.Error](err)
	if !o.on.Load() || err != nil && (!reply || isFault(err)) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last) >= outageOver && o.on.Swap(false) {
		o.log.Warn("redis works again", "dur", o.last.Sub(o.first).Round(time.Second), "failures", o.failures)
	}
}

// admit reports whether to log a message, and how often it was skipped before. Without an outage all are logged.
func (o *outage) admit(msg string) (skipped int, ok bool) {
	if !o.on.Load() {
		return 0, true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.lines[msg]
	if time.Since(h.logged) >= outageRemind {
		o.lines[msg] = held{logged: time.Now()}
		return h.skipped, true
	}
	o.lines[msg] = held{h.logged, h.skipped + 1}
	return 0, false
}

// isFault reports whether an error says that Redis cannot be used, and not that a request was wrong or cancelled.
func isFault(err error) bool {
	if _, reply := errors.AsType[redis.Error](err); !reply {
		return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrClosed)
	}
	if _, remedy := store.Unwritable(err); remedy != "" {
		return true
	}
	return slices.ContainsFunc([]string{
		"LOADING", "MASTERDOWN", "NOAUTH", "WRONGPASS", "EXECABORT", "max number of clients",
	}, func(prefix string) bool { return redis.HasErrorPrefix(err, prefix) })
}

// calm is a log handler for what fails again and again: during an outage it passes a warning that is not about a run
// once, and then at most once per outageRemind with the number of those that it skipped.
type calm struct {
	slog.Handler
	outage *outage
}

// calmLog returns a logger for libraries and loops.
func (p *Parts) calmLog() *slog.Logger { return slog.New(calm{p.Log.Handler(), p.connections.outage}) }

// Handle implements [slog.Handler].
func (h calm) Handle(ctx context.Context, r slog.Record) error {
	aboutRun := false
	r.Attrs(func(a slog.Attr) bool { aboutRun = aboutRun || a.Key == "run"; return !aboutRun })
	if r.Level < slog.LevelWarn || aboutRun {
		return h.Handler.Handle(ctx, r)
	}
	skipped, ok := h.outage.admit(r.Message)
	if !ok {
		return nil
	}
	if skipped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("skipped", skipped))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h calm) WithAttrs(attrs []slog.Attr) slog.Handler {
	if slices.ContainsFunc(attrs, func(a slog.Attr) bool { return a.Key == "run" }) {
		return h.Handler.WithAttrs(attrs)
	}
	return calm{h.Handler.WithAttrs(attrs), h.outage}
}

// WithGroup implements [slog.Handler].
func (h calm) WithGroup(name string) slog.Handler { return calm{h.Handler.WithGroup(name), h.outage} }
