package table

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := Report{about: "a machine\na session"}
	r.Compare("contender", "wall", "of the SDK")
	r.Compare("errand", "2.00 s", Ratio(3, 2))
	r.Compare("another one", "1.00 s", Ratio(3, 0))
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

contender     wall     of the SDK
errand        2.00 s   1.50
another one   1.00 s   -

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

func TestMedian(t *testing.T) {
	t.Parallel()
	for want, of := range map[int][]int{1: {1}, 2: {3, 1, 2}, 5: {9, 5, 7, 1}} {
		if got := Median(of); got != want {
			t.Errorf("median of %v is %d, want %d", of, got, want)
		}
	}
}
