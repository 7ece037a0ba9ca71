package automation

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Schedules returns the state of the schedules that the visitor of the context may see, in the order of the
// configuration.
func (s *Source) Schedules(ctx context.Context) ([]tasks.Schedule, error) {
	list := []tasks.Schedule{}
	for _, one := range s.schedules {
		if !people.VisitorOf(ctx).May(ctx, policy.See, one.Repo).Allowed {
			continue
		}
		st, err := one.memo.Load(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, one.show(st))
	}
	return list, nil
}

// ResumeSchedule ends the pause of a schedule. It returns [tasks.ErrNotFound] if the visitor of the context sees none
// with that name, and a *[people.RoleError] if they are no operator in its repository.
func (s *Source) ResumeSchedule(ctx context.Context, name string) (tasks.Schedule, error) {
	at := slices.IndexFunc(s.schedules, func(one *series) bool { return one.Name == name })
	if at < 0 {
		return tasks.Schedule{}, tasks.ErrNotFound
	}
	one := s.schedules[at]
	visitor := people.VisitorOf(ctx)
	if !visitor.May(ctx, policy.See, one.Repo).Allowed {
		return tasks.Schedule{}, tasks.ErrNotFound
	}
	if err := visitor.Operates(ctx, one.Repo); err != nil {
		return tasks.Schedule{}, err
	}
	st, err := one.resume(ctx)
	return one.show(st), err
}

// show returns a state as it is shown.
func (s *series) show(st state) tasks.Schedule {
	shown := tasks.Schedule{
		Name: s.Name, When: s.When, Prompt: s.Prompt, Repo: s.Repo, Branch: s.Branch, Profile: s.Profile,
		MaxUSD: s.MaxUSD, Results: s.Results, Task: st.Task, Failures: st.Failures, Problem: st.Problem,
		Paused: st.Paused, Skipped: st.Skipped,
	}
	if st.Task != "" {
		shown.Last = tasks.Born(st.Task).UTC()
	}
	if st.Paused.IsZero() {
		shown.Next = s.Times.Next(s.source.cfg.Now()).UTC()
	}
	return shown
}

// Diagnose reports the schedules that are paused.
func (s *Source) Diagnose(ctx context.Context) (found []doctor.Finding) {
	list, err := s.Schedules(ctx)
	if err != nil {
		return []doctor.Finding{{What: "schedules cannot be read", Why: err.Error() + ".", Remedy: "Check Redis."}}
	}
	for _, one := range list {
		f := doctor.Finding{What: fmt.Sprintf("schedule %s: %s", one.Name, one.When)}
		if !one.Paused.IsZero() {
			f.Why = fmt.Sprintf("It has been paused since %s, after %d tasks in a row that failed.",
				one.Paused.UTC().Format("2006-01-02 15:04 MST"), one.Failures)
			f.Remedy = fmt.Sprintf("See why with `enqueue show %s`, then `enqueue schedules resume %s`.",
				display.TaskID(one.Task), one.Name)
			if one.Problem != "" {
				f.Remedy = fmt.Sprintf("It was refused: %s Correct it, then `enqueue schedules resume %s`.",
					one.Problem, one.Name)
			}
		}
		found = append(found, f)
	}
	return found
}
