package autofix

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge"
)

// The wait for checks should be bounded, with growing pauses.
func TestChecksAreWaitedFor(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for waited, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, time.Minute: 30 * time.Second, 8 * time.Minute: 2 * time.Minute,
		11 * time.Minute: 165 * time.Second, 119 * time.Minute: 5 * time.Minute, 2 * time.Hour: 0,
	} {
		now := since.Add(waited)
		if again, wait := untilChecks(since, now); wait != (want > 0) || wait && again.Sub(now) != want {
			t.Errorf("after %s again in %s, %t; want %s", waited, again.Sub(now), wait, want)
		}
	}
}

// Each set of failed checks of a head is worked on by itself.
func TestFailureKey(t *testing.T) {
	t.Parallel()
	key := func(head string, names ...string) string {
		var c forge.CIStatus
		for _, name := range names {
			c.Failed = append(c.Failed, forge.FailedCheck{Name: name})
		}
		return failureKey(c, head)
	}
	one := key("a1", "unit")
	if one != key("a1", "unit") {
		t.Error("the same failure has two keys")
	}
	for what, other := range map[string]string{
		"head": key("b2", "unit"), "check": key("a1", "lint"), "set of checks": key("a1", "unit", "lint"),
	} {
		if other == one {
			t.Errorf("another %s has the same key", what)
		}
	}
}
