package autofix

import (
	"testing"
	"time"
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
