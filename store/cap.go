package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Cap bounds the concurrent runs of a scope in the fleet. A task counts from its claim until it stops running.
type Cap struct {
	Scope string // an additional scope of the claim, or a kind ending in a colon: the task's scopes of that kind
	Max   int    // 0: no cap
}

// Of returns those of a task's scopes that the cap bounds.
func (c Cap) Of(scopes []string) (bound []string) {
	switch {
	case c.Max <= 0:
		return nil
	case !strings.HasSuffix(c.Scope, ":"):
		return []string{c.Scope}
	}
	for _, s := range scopes {
		if strings.HasPrefix(s, c.Scope) {
			bound = append(bound, s)
		}
	}
	return bound
}

// Full refuses to claim a task because one of its scopes has reached its cap. The task keeps its place and uses no attempt.
type Full struct {
	Blocked

	Explained string // key of the last [Store.Explain]; empty if there was none
}

// Blocked is why a waiting task was refused at its last delivery. The zero value means nothing.
type Blocked struct {
	Scope string // that is full; empty = its thread is busy
	Runs  int    // in that scope
	Max   int    // of them
	Place int    // in the line of those that wait for the scope, the oldest first, from 1 on; without a scope, how many of its thread come first
}

// blocked decodes a field that a script wrote.
func blocked(field string) Blocked {
	f := strings.SplitN(field, " ", 4)
	if len(f) < 4 {
		return Blocked{}
	}
	return Blocked{Scope: f[3], Runs: number(f[0]), Max: number(f[1]), Place: number(f[2])}
}

// Error implements error.
func (e *Full) Error() string { return e.Scope + " has as many runs as it may have at once" }

// lease is how long a run counts under its caps without a renewal. It is longer than the claim, because the owner of a claim that Redis
// lost continues for Outage. The run of a dead owner counts until it is requeued.
func (s *db) lease() time.Duration { return s.cfg.ClaimTTL + s.cfg.Outage }

// capArgs returns caps as arguments of claim.lua: the additional scopes, then pairs.
func capArgs(caps []Cap) []any {
	var own []string
	var pairs []any
	for _, c := range caps {
		if c.Max <= 0 {
			continue
		}
		if !strings.HasSuffix(c.Scope, ":") {
			own = append(own, c.Scope)
		}
		pairs = append(pairs, c.Scope, fmt.Sprint(c.Max))
	}
	return append([]any{strings.Join(own, "\n")}, pairs...)
}

// InLine reads the task that has waited longest for a place in a scope, or returns [ErrNotFound].
func (s *Store) InLine(ctx context.Context, scope string) (Record, error) {
	r, err := s.run(ctx, "inline", scope)
	if err != nil {
		return Record{}, fmt.Errorf("read the line of %s: %w", scope, err)
	}
	return s.Get(ctx, r.text(1))
}

// NoSlot notes why no worker has room for a waiting task that nothing else keeps from starting, for people. It is no refusal of a claim: the
// task keeps its place in the line that it stands in. What still keeps it from starting, or waits for another delivery, is left as it is.
func (s *Store) NoSlot(ctx context.Context, id string, delivery int, why string) error {
	if _, err := s.run(ctx, "noslot", id, delivery, why); err != nil {
		return fmt.Errorf("note why %s waits: %w", id, err)
	}
	return nil
}

// Lend gives the places of a running task to others while it waits for a person. It is undone by [Claim.TakeBack], and by whatever ends the
// run. [ErrStale] when the task is not ours any more.
func (c *Claim) Lend(ctx context.Context) error {
	if _, err := c.store.run(ctx, "lend", c.ID(), c.fence); err != nil {
		return fmt.Errorf("lend the places of %s: %w", c.ID(), err)
	}
	return nil
}

// TakeBack counts the task again where it did before [Claim.Lend], whether or not there is a place: a scope may so have more runs than its
// cap, by those that were waiting for a person. [ErrStale] when the task is not ours any more.
func (c *Claim) TakeBack(ctx context.Context) error {
	if _, err := c.store.run(ctx, "takeback", c.ID(), c.fence, c.store.lease().Milliseconds()); err != nil {
		return fmt.Errorf("take back the places of %s: %w", c.ID(), err)
	}
	return nil
}

// Idle notes that a claimed task waits before it begins, and why, for people; an empty why, that it begins. The death of a worker is not
// counted against a task that has not begun. One with which a worker has died has not begun until that is said. [ErrStale] when the task is not ours any more.
func (c *Claim) Idle(ctx context.Context, why string) error {
	if _, err := c.store.run(ctx, "idle", c.ID(), c.fence, why); err != nil {
		return fmt.Errorf("note that %s waits: %w", c.ID(), err)
	}
	return nil
}

// Explanation is an event that tells the followers of a waiting task why it waits.
type Explanation struct {
	Delivery int // for which the task waits
	Key      string
	Event    json.RawMessage
	Interval time.Duration // minimum time between two explanations
}

// Explain appends an explanation to a waiting task's events. It returns fresh = false and changes nothing if the last explanation had the same
// key or is more recent than the interval, or if the task no longer waits for the delivery. If only the interval was in the way, retryIn is
// what is left of it.
func (s *Store) Explain(ctx context.Context, id string, e Explanation) (fresh bool, retryIn time.Duration, err error) {
	r, err := s.run(ctx, "explain", id, e.Delivery, e.Key, []byte(e.Event), e.Interval.Microseconds(), s.cfg.EventCap)
	if err != nil {
		return false, 0, fmt.Errorf("explain why %s waits: %w", id, err)
	}
	return r.text(0) == "ok", time.Duration(r.number(1)) * time.Microsecond, nil
}
