package tasks

import (
	"testing"
	"time"
)

func TestLasted(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 400 * time.Millisecond: "0s", time.Second: "1s", time.Minute: "1m", 10 * time.Minute: "10m",
		125 * time.Second: "2m5s", time.Hour: "1h", 2 * time.Hour: "2h", 61 * time.Minute: "1h1m",
		time.Hour + 5*time.Second: "1h0m5s", 20 * time.Hour: "20h",
	} {
		if got := Lasted(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}
