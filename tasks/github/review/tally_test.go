package review

import (
	"testing"

	"github.com/errand-fleet/errand/tasks/github/findings"
)

// A finding is counted once, even if its outcome is added again, and the list of those that were counted is bounded.
func TestTally(t *testing.T) {
	t.Parallel()
	judged := []findings.Judged{{Known: findings.Known{Finding: findings.Finding{Severity: findings.Major}}, Outcome: findings.Ignored}}
	judged[0].ID = "0123456789ab"
	var got tally
	for n := range 2 * maxCounted {
		got.add(n, judged)
		got.add(n, judged)
	}
	if got.Counts["other"].Ignored != 2*maxCounted || len(got.Counted) != maxCounted {
		t.Errorf("%+v, %d recognized", got.Counts, len(got.Counted))
	}
}
