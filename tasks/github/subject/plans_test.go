package subject

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Requests that are withdrawn leave the plan that was posted, in whatever order they go, and the ones that stand count.
func TestPlansWithout(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	posted := PlanRequest{Task: "1", Done: at}
	for kinds := range 8 { // which of the requests work on the issue
		for _, order := range [][]string{
			{"2", "3", "4"}, {"2", "4", "3"}, {"3", "2", "4"}, {"3", "4", "2"}, {"4", "2", "3"}, {"4", "3", "2"},
		} {
			var p Plans
			p = p.With(PlanRequest{Task: posted.Task}).done(posted)
			work := map[string]bool{}
			for i, task := range []string{"2", "3", "4"} {
				work[task] = kinds&(1<<i) != 0
				p = p.With(PlanRequest{Task: task, Work: work[task]}).With(PlanRequest{Task: task}) // its event comes again
			}
			left := []string{"2", "3", "4"}
			for _, task := range order {
				last := left[len(left)-1]
				if got := p.Last(); got.Task != last || p.Waits() == work[last] || got.PostedBefore(at) {
					t.Errorf("%d %v: %+v counts of %v", kinds, order, got, left)
				}
				p = p.Without(task)
				left = slices.DeleteFunc(left, func(one string) bool { return one == task })
			}
			if p = p.Without(posted.Task); p.Last() != posted || !p.Waits() || !p.Last().PostedBefore(at) {
				t.Errorf("%d %v: %+v", kinds, order, p)
			}
		}
	}
}

// What is done replaces what was requested before it, and what was done before it.
func TestPlansDone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	done := func(task string, work bool, after time.Duration) PlanRequest {
		return PlanRequest{Task: task, Work: work, Done: at.Add(after)}
	}
	for i, c := range []struct {
		requests Plans
		last     PlanRequest
		want     []string
	}{
		{Plans{{Task: "1"}, {Task: "2", Work: true}}, done("1", false, 0), []string{"1", "2"}},
		{Plans{{Task: "1"}, {Task: "2", Work: true}}, done("2", true, 0), []string{"2"}},
		{Plans{done("1", false, 0), {Task: "2"}, {Task: "3"}}, done("3", false, time.Hour), []string{"3"}},
		// a retry is done after a later request
		{Plans{{Task: "1"}, done("2", true, 0)}, done("1", false, time.Hour), []string{"1"}},
		{Plans{{Task: "1", Work: true}, done("2", false, 0)}, done("1", true, time.Hour), []string{"1"}},
	} {
		var got []string
		for _, r := range c.requests.done(c.last) {
			got = append(got, r.Task)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d: %s, want %s", i, fmt.Sprint(got), fmt.Sprint(c.want))
		}
	}
}
