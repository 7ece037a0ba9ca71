package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// Estimate is what a task is likely to cost: the median of tasks of the same repository, kind and size. The zero value
// means that too few of them are known.
type Estimate struct {
	USD   float64
	Tasks int // that it is from
}

// Estimated is the Tool of a notice event that says what a task is likely to cost.
const Estimated = "estimate"

func (e Estimate) String() string {
	return fmt.Sprintf("about %s, from %d tasks like it", legible.Dollars(e.USD), e.Tasks)
}

// The number of tasks that an estimate is from.
const (
	minHistory = 3
	maxHistory = 20
)

// history is what the latest tasks of a repository have cost, by kind and size, the oldest first.
type history map[string][]float64

// historyOf returns the name of the memo with a task's history, and the task's key there.
func historyOf(t Task, lines int) (memo, key string) {
	return "history/" + strings.ToLower(t.Repo), strings.TrimSuffix(t.Source+"/"+t.Kind+"/"+SizeOf(lines), "/")
}

// EstimateCost estimates the cost of a task. lines is the size of the change that it is about; 0: unknown.
func EstimateCost(ctx context.Context, s *store.Store, t Task, lines int) (Estimate, error) {
	memo, key := historyOf(t, lines)
	body, err := s.Memos.Memo(ctx, memo)
	if err != nil {
		return Estimate{}, err
	}
	var h history
	_ = json.Unmarshal(body, &h) // without it, nothing is known
	costs := slices.Sorted(slices.Values(h[key]))
	n := len(costs)
	if n < minHistory {
		return Estimate{}, nil
	}
	return Estimate{USD: (costs[(n-1)/2] + costs[n/2]) / 2, Tasks: n}, nil
}

// RememberCost adds what a completed task has cost to the history.
func RememberCost(ctx context.Context, s *store.Store, t Task, lines int, usd float64) error {
	memo, key := historyOf(t, lines)
	return s.Memos.ChangeMemo(ctx, memo, func(body json.RawMessage) (json.RawMessage, error) {
		h := history{}
		if json.Unmarshal(body, &h) != nil {
			h = history{}
		}
		h[key] = append(h[key], usd)
		h[key] = h[key][max(0, len(h[key])-maxHistory):]
		return format.JSON(h), nil
	})
}
