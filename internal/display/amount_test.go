package display

import (
	"fmt"
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

func TestTaskID(t *testing.T) {
	t.Parallel()
	const id = "1795977234251384-slack-c0payments"
	const short = "b90wcne"
	if got := TaskID(id); got != short {
		t.Errorf("got %s, want %s: IDs in messages are no longer found", got, short)
	}
	for part, want := range map[string]bool{
		short: true, "B9OWC": true, short[1:]: false, short + "0": false, id: true, "c0payments": false, "b90": false,
	} {
		if IsTaskID(id, part) != want {
			t.Errorf("%s is the ID: %t", part, !want)
		}
	}
	seen := map[string]string{}
	for i := range 100_000 {
		long := fmt.Sprintf("%016d-slack-c1", 1_795_977_234_251_384+int64(i)*1_000)
		if other := seen[TaskID(long)]; other != "" {
			t.Logf("%s and %s have the short ID %s", long, other, TaskID(long))
		}
		seen[TaskID(long)] = long
	}
	if len(seen) < 100_000-3 {
		t.Errorf("%d of 100,000 short IDs are different", len(seen))
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
