package github

import (
	"testing"
	"time"
)

// At a status a minute, a run of two hours stays far below the thousand that a commit may have.
func TestIntervals(t *testing.T) {
	t.Parallel()
	if got := new(checkRun).Interval(); got != 15*time.Second {
		t.Errorf("check run: %s", got)
	}
	if got := 2 * time.Hour / new(commitStatus).Interval(); got > 150 {
		t.Errorf("%d statuses in two hours", got)
	}
}
