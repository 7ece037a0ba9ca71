package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// maxCounted bounds the findings that are recognized if they are added again.
const maxCounted = 500

// tally counts what people did with the findings of reviews in a repository.
type tally struct {
	Counts  map[string]tasks.Acceptance `json:"counts,omitempty"`  // by kind
	Counted []string                    `json:"counted,omitempty"` // the newest in Counts, by pull request and ID
}

func (m memory) tally(repo string) intake.Memo[tally] {
	return intake.Memo[tally]{Memory: m.Store, Name: "github/" + strings.ToLower(repo) + "/findings", Log: m.Log}
}

// add counts the findings of a pull request, each only once.
func (t *tally) add(number int, all []findings.Judged) {
	if t.Counts == nil {
		t.Counts = map[string]tasks.Acceptance{}
	}
	for _, j := range all {
		key := fmt.Sprintf("%d/%s", number, j.ID)
		if slices.Contains(t.Counted, key) {
			continue
		}
		t.Counted = append(t.Counted, key)

		c := t.Counts[j.Kind.Name()]
		c.Kind = j.Kind.Name()
		switch j.Outcome {
		case findings.Accepted:
			c.Fixed++
		case findings.Rejected:
			c.Dismissed++
		case findings.Ignored:
			c.Ignored++
		}
		t.Counts[c.Kind] = c
	}
	t.Counted = t.Counted[max(0, len(t.Counted)-maxCounted):]
}

// countOutcomes adds the outcomes of a pull request's findings to those of its repository. It may be called again.
func (m memory) countOutcomes(ctx context.Context, r thread.Ref, merged bool) error {
	l, err := m.ledgerMemo(r).Load(ctx)
	if err != nil {
		return err
	}
	judged := l.Outcomes(merged)
	if len(judged) == 0 {
		return nil
	}
	err = m.tally(r.Repo).Change(ctx, func(t *tally) error {
		t.add(r.Number, judged)
		return nil
	})
	if err != nil {
		return err
	}
	return m.changeLedger(ctx, r, func(l *findings.Ledger) { l.Count(judged) })
}
