package store

import (
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

// Full is the refusal to claim a task because as many run in one of its scopes as may. It keeps its place, and has used no attempt.
type Full struct{ Scope string }

// Error tells the scope.
func (e *Full) Error() string { return e.Scope + " has as many runs as it may have at once" }

// lease is how long a run counts under its caps without a refresh. It is longer than the claim: one that Redis forgot, or let lapse while
// it was frozen, is still its owner's, who runs on for Outage. A dead owner's run counts until it is requeued.
func (s *Store) lease() time.Duration { return s.cfg.ClaimTTL + s.cfg.Outage }

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
