package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/bench/table"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := report{machine: "a machine", session: "a session"}
	r.readings = []reading{
		{limitName, sample{Wall: time.Second, CPU: time.Second / 4, RSS: 2 << 20}, 400 << 20},
		{ownName, sample{Wall: 2 * time.Second, CPU: 3 * time.Second, RSS: 24 << 20}, 400 << 20},
		{sdkName, sample{Wall: 4 * time.Second, CPU: 2 * time.Second, RSS: 120 << 20}, 400 << 20},
	}
	r.Least("speed", 2, 1.2, "%.1f")
	r.Least("slow", 1, 1.2, "%.1f")
	r.Most("at the bar", 24, 24, "%.0f MB")
	r.Most("over it", 25, 24, "%.0f MB")
	r.Note("by the way", 7, "%.0f ms")
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	want := `a machine
a session

contender        wall     speed      of the limit   of the SDK   CPU      of the SDK   peak RSS
cat > file       1.00 s   400 MB/s   1.00           4.00         0.25 s   0.12         2.0 MB
errand           2.00 s   200 MB/s   0.50           2.00         3.00 s   1.50         24.0 MB
TypeScript SDK   4.00 s   100 MB/s   0.25           1.00         2.00 s   1.00         120.0 MB

promise      measured   bar        
speed        2.0        >= 1.2     PASS
slow         1.0        >= 1.2     MISS
at the bar   24 MB      <= 24 MB   PASS
over it      25 MB      <= 24 MB   MISS
by the way   7 ms                  
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReportWithoutSDK(t *testing.T) {
	t.Parallel()
	r := report{readings: []reading{{ownName, sample{Wall: time.Second, CPU: time.Second}, 1 << 20}}}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "errand      1.00 s   1 MB/s   -              -            1.00 s   -            0.0 MB"; !strings.Contains(out.String(), want) {
		t.Errorf("no line %q in\n%s", want, out.String())
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for want, of := range map[int][]int{1: {1}, 2: {3, 1, 2}, 5: {9, 5, 7, 1}} {
		if got := table.Median(of); got != want {
			t.Errorf("median of %v is %d, want %d", of, got, want)
		}
	}
}
