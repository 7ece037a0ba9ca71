package desk

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A repository that no task may use should be refused without a worker.
func TestOfferThatNoWorkerIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{}, false }
	for _, where := range []capacity.Where{{Repo: "acme/other"}, {Dir: "/" + strings.Repeat("x", maxPath)}} {
		if _, err := f.desk.Offer(t.Context(), where); err == nil {
			t.Errorf("%.20s is open", where.Repo+where.Dir)
		} else if _, ok := errors.AsType[*tasks.InputError](err); !ok {
			t.Errorf("%.20s: %v", where.Repo+where.Dir, err)
		}
	}
}
