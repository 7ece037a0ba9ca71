package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Cap bounds how many tasks of a scope run at once, in all of the fleet. It is part of the claim: a task counts from its claim until it is
// not running any more, however that comes about.
type Cap struct {
	Scope string // a scope that the claim counts in besides its task's; or, ending in a colon, all of the task's own of that kind
	Max   int    // 0: no cap
}

// Of lists the scopes that the cap bounds of a task in these; none where there is no cap.
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

// Full is the refusal to claim a task because as many run in one of its scopes as may. It keeps its place, and has used no attempt.
type Full struct {
	Blocked

	Told string // what [Store.Tell] was last told of it; empty = nothing
}

// Blocked is what a waiting task was refused for at its last delivery. The zero value is nothing.
type Blocked struct {
	Scope string // that is full; empty = its thread is busy
	Runs  int    // in that scope
	Max   int    // of them
	Place int    // in the line of those that wait for the scope, the oldest first, from 1 on; without a scope, how many of its thread come first
}

// blocked reads what a script has noted.
func blocked(field string) Blocked {
	f := strings.SplitN(field, " ", 4)
	if len(f) < 4 {
		return Blocked{}
	}
	return Blocked{Scope: f[3], Runs: number(f[0]), Max: number(f[1]), Place: number(f[2])}
}

// Error tells the scope.
func (e *Full) Error() string { return e.Scope + " has as many runs as it may have at once" }

// lease is how long a run counts under its caps without a refresh. It is longer than the claim: one that Redis forgot, or let lapse while
// it was frozen, is still its owner's, who runs on for Outage. A dead owner's run counts until it is requeued.
func (s *db) lease() time.Duration { return s.cfg.ClaimTTL + s.cfg.Outage }

// capArgs are the caps as claim.lua takes them: the scopes that are not the task's, then pairs.
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

// InLine reads the task that has waited longest for a place in a scope; [ErrNotFound] when none does.
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

// Tell notes what followers of a waiting task are told about why it waits, and appends event to its events. key names what is told: fresh is
// false, and nothing changes, when that was told last, when the last telling was less than apart ago, or when the task does not wait for
// this delivery any more. early is how much later it may be told where only that was too short ago.
func (s *Store) Tell(ctx context.Context, id string, delivery int, key string, event json.RawMessage, apart time.Duration) (fresh bool, early time.Duration, err error) {
	r, err := s.run(ctx, "tell", id, delivery, key, []byte(event), apart.Microseconds(), s.cfg.EventCap)
	if err != nil {
		return false, 0, fmt.Errorf("tell why %s waits: %w", id, err)
	}
	return r.text(0) == "ok", time.Duration(r.number(1)) * time.Microsecond, nil
}
