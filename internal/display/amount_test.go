package display

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 47 * time.Hour: "47h",
		50 * time.Hour: "2d",
	} {
		if got := Age(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0k", 65_200: "65.2k", 2_000_000: "2.0M"} {
		if got := Count(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestDollars(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]string{0: "$0.00", 0.001: "under $0.01", 0.005: "$0.01", 12.5: "$12.50"} {
		if got := Dollars(usd); got != want {
			t.Errorf("%v is %s, want %s", usd, got, want)
		}
	}
}
