package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Cap bounds the concurrent runs of a scope in the fleet. A task counts from its claim until it stops running.
type Cap struct {
	Scope string // the kind of the task's scopes, ending in a colon
	Max   int    // 0: no cap
}

// Of returns the task's scopes that the cap bounds.
func (c Cap) Of(scopes []string) (bound []string) {
	if c.Max <= 0 {
		return nil
	}
	for _, s := range scopes {
		if strings.HasPrefix(s, c.Scope) {
			bound = append(bound, s)
		}
	}
	return bound
}

// Full refuses to claim a task because one of its scopes has reached its cap, or because its free places are for tasks
// that are before it in line. The task is blocked: it has no delivery until a place becomes free for it. Its place in
// line follows the class and the ID, and it uses no attempt. The first in line has five seconds to take a free place.
type Full struct{ Blocked }

// Blocked is why a waiting task has no delivery: it waits for its thread or for a place. Zero: for neither.
type Blocked struct {
	Scope string // the scope that is full; empty if the thread is busy
	Runs  int    // in that scope
	Max   int    // the cap of that scope
	Place int    // place in the scope's line, from 1, oldest first; without a scope, the thread's tasks ahead
}

// blocked decodes a field that a script wrote.
func blocked(field string) Blocked {
	f := strings.SplitN(field, " ", 4)
	if len(f) < 4 {
		return Blocked{}
	}
	return Blocked{Scope: f[3], Runs: number(f[0]), Max: number(f[1]), Place: max(number(f[2]), 1)}
}

// Error implements error.
func (e *Full) Error() string {
	if e.Runs < e.Max {
		return "others come first in " + e.Scope
	}
	return e.Scope + " has as many runs as it may have at once"
}

// lease is how long a run counts under its caps without a renewal. It is longer than the claim, because the owner of a
// claim that Redis lost continues for Outage. The run of a dead owner counts until it is requeued.
func (s *Store) lease() time.Duration { return s.cfg.ClaimTTL + s.cfg.Outage }

// capArgs returns caps as arguments of scripts: pairs of a kind and its cap.
func capArgs(caps []Cap) (pairs []any) {
	for _, c := range caps {
		if c.Max > 0 {
			pairs = append(pairs, c.Scope, fmt.Sprint(c.Max))
		}
	}
	return pairs
}

// NoSlot stores for display why no worker has room for a waiting task that is otherwise ready. It does not count as a
// refused claim, so the task keeps its place in line. It changes nothing if the task is blocked by something else or
// waits for another delivery.
func (s *Store) NoSlot(ctx context.Context, id string, delivery int, why string) error {
	_, err := s.run(ctx, "noslot", id, delivery, why)
	return wrapf(err, "note why %s waits", id)
}

// Lend frees a running task's places under its caps while it waits for a person, until [Claim.TakeBack] or the end of
// the run. It returns [ErrStale] if the claim is lost.
func (c *Claim) Lend(ctx context.Context) error {
	_, err := c.store.run(ctx, "lend", c.ID(), c.fence)
	return wrapf(err, "lend the places of %s", c.ID())
}

// TakeBack undoes [Claim.Lend]. It does not wait for a free place, so a scope may exceed its cap by the runs that
// waited for a person. It returns [ErrStale] if the claim is lost.
func (c *Claim) TakeBack(ctx context.Context) error {
	_, err := c.store.run(ctx, "takeback", c.ID(), c.fence, c.store.lease().Milliseconds())
	return wrapf(err, "take back the places of %s", c.ID())
}

// Idle stores for display why a claimed task waits before it starts; an empty why means that it starts now. A worker's
// death does not count against a task that has not started. A task that has already lost a worker stays idle until
// Idle is called with an empty why. It returns [ErrStale] if the claim is lost.
func (c *Claim) Idle(ctx context.Context, why string) error {
	_, err := c.store.run(ctx, "idle", c.ID(), c.fence, why)
	return wrapf(err, "note that %s waits", c.ID())
}

// Explain notes that people are told why a task waits, and returns the task as it was in that step. It returns nil and
// changes nothing if the last explanation had the same key or is more recent than the interval, or if the task no
// longer waits for the delivery. If only the interval was in the way, retryIn is what is left of it.
func (s *Store) Explain(
	ctx context.Context, id string, delivery int, key string, interval time.Duration,
) (task *Record, retryIn time.Duration, _ error) {
	r, err := s.run(ctx, "explain", id, delivery, key, interval.Microseconds())
	if err != nil {
		return nil, 0, fmt.Errorf("explain why %s waits: %w", id, err)
	}
	if r.text(0) != "ok" {
		return nil, time.Duration(r.number(1)) * time.Microsecond, nil
	}
	rec := r.record(id, 1)
	return &rec, 0, nil
}
