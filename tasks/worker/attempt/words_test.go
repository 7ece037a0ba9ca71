package attempt

import (
	"strings"
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for away, want := range map[time.Duration]string{
		-time.Minute: "(in 0s)", 20 * time.Second: "(in 20s)", 100 * time.Second: "(in 1m40s)",
		130 * time.Second: "(in 2m)", 6*time.Hour - 10*time.Second: "(in 6h)", 47 * time.Hour: "(in 47h)",
		6*24*time.Hour + time.Hour: "(in 6d)",
	} {
		if got := moment(now.Add(away), now); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %s", away, got, want)
		}
	}
}
