package tasks

import (
	"errors"
	"strings"
	"testing"
)

// A repository that no task may use should be refused without a worker.
func TestOfferThatNoWorkerIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.Repository = func(string) (Repository, bool) { return Repository{}, false }
	for _, where := range []Where{{Repo: "acme/other"}, {Dir: "/" + strings.Repeat("x", maxPath)}} {
		if _, err := f.desk.Offer(t.Context(), where); err == nil {
			t.Errorf("%.20s is open", where.Repo+where.Dir)
		} else if _, ok := errors.AsType[*InputError](err); !ok {
			t.Errorf("%.20s: %v", where.Repo+where.Dir, err)
		}
	}
}
