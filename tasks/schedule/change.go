package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

const (
	// list has the schedules that people made.
	list = "schedules"
	// maxSchedules keeps a look at all of them short.
	maxSchedules = 100
)

var (
	nameForm    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{2,30}$`)
)

// all returns the schedules of errand.yaml, and those that people made, by name. What is in errand.yaml hides one with the
// same name. With an error it returns those of errand.yaml.
func (s *Source) all(ctx context.Context) ([]*series, error) {
	all := slices.Clone(s.fixed)
	entries, err := s.cfg.Lists.List(ctx, list)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		var made Schedule
		if err := json.Unmarshal([]byte(entries[name]), &made); err != nil {
			s.log.Warn("read schedule", "schedule", name, "err", err)
			continue
		}
		one, err := s.series(made)
		switch {
		case err != nil: // from a newer version
			s.log.Warn("read schedule", "schedule", name, "err", err)
		case slices.ContainsFunc(s.fixed, func(one *series) bool { return one.Name == name }):
			s.log.Warn("the schedule of errand.yaml hides one that was made through the API", "schedule", name)
		default:
			all = append(all, one)
		}
	}
	return all, err
}

// find returns the schedule with a name, or nil, and an error if the visitor of the context may not change it.
func find(ctx context.Context, all []*series, name string) (*series, error) {
	for _, one := range all {
		if one.Name == name {
			return one, mayChange(ctx, one.Repo)
		}
	}
	return nil, nil
}

// mayChange returns an error unless the visitor is an operator in a repository.
func mayChange(ctx context.Context, repo string) error {
	role := tasks.VisitorOf(ctx).RoleIn(ctx, repo)
	switch {
	case role < tasks.Viewer:
		return tasks.ErrNotFound
	case role < tasks.Operator:
		return &tasks.RoleError{Sentence: fmt.Sprintf("This needs the role %s. Your role here is %s.", tasks.Operator, role)}
	}
	return nil
}

// ResumeSchedule ends the pause of a schedule. It returns [tasks.ErrNotFound] for an unknown name.
func (s *Source) ResumeSchedule(ctx context.Context, name string) (tasks.Schedule, error) {
	all, err := s.all(ctx)
	if err != nil {
		return tasks.Schedule{}, err
	}
	one, err := find(ctx, all, name)
	switch {
	case err != nil:
		return tasks.Schedule{}, err
	case one == nil:
		return tasks.Schedule{}, tasks.ErrNotFound
	}
	st, err := one.resume(ctx)
	return one.show(st), err
}

// PutSchedule makes a schedule, or changes one that was made before. A new one, or one with new times, begins with the next
// time. An *[tasks.InputError] says what is wrong with it.
func (s *Source) PutSchedule(ctx context.Context, d Schedule) (tasks.Schedule, error) {
	one, err := s.checked(d)
	if err == nil {
		err = mayChange(ctx, one.Repo)
	}
	if err != nil {
		return tasks.Schedule{}, err
	}
	before, err := s.changeable(ctx, one.Name)
	if err != nil {
		return tasks.Schedule{}, err
	}
	one.By, one.Made = tasks.VisitorOf(ctx).Name, s.now().UTC()
	if before != nil {
		one.Made = before.Made
	}
	body, err := json.Marshal(one.Schedule)
	if err == nil {
		err = s.cfg.Lists.Save(ctx, list, one.Name, body)
	}
	if err != nil {
		return tasks.Schedule{}, err
	}
	select {
	case s.made <- struct{}{}:
	default:
	}
	st, err := one.current(ctx)
	return one.show(st), err
}

// DropSchedule removes a schedule that was made through the API. Its last task goes on. It returns [tasks.ErrNotFound] for an unknown name.
func (s *Source) DropSchedule(ctx context.Context, name string) error {
	one, err := s.changeable(ctx, name)
	if err != nil {
		return err
	}
	dropped, err := false, error(nil)
	if one != nil {
		dropped, err = s.cfg.Lists.Remove(ctx, list, name)
	}
	if err == nil && !dropped {
		err = tasks.ErrNotFound
	}
	return err
}

// changeable returns the schedule with a name if the visitor of the context may replace or remove it, or nil if there may
// be a new one.
func (s *Source) changeable(ctx context.Context, name string) (*series, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	one, err := find(ctx, all, name)
	switch {
	case err != nil:
		return nil, err
	case one != nil && slices.Contains(s.fixed, one):
		return nil, &tasks.InputError{Sentence: "The schedule " + name + " is in errand.yaml. Change it there, or choose another name."}
	case one == nil && len(all) >= maxSchedules:
		return nil, &tasks.InputError{Sentence: fmt.Sprintf("There are %d schedules already. Remove one of them first.", maxSchedules)}
	}
	return one, nil
}

// checked returns the series of a new definition, as the policy allows it.
func (s *Source) checked(d Schedule) (*series, error) {
	d.Profile, d.Prompt = cmp.Or(d.Profile, agent.Write), strings.TrimSpace(d.Prompt)
	wrong := ""
	switch {
	case !nameForm.MatchString(d.Name):
		wrong = "The name must have lower-case letters, digits and dashes, at most 32, with a letter first."
	case d.Prompt == "":
		wrong = "The schedule has no prompt, which says what to do."
	case d.Profile != agent.Write && d.Profile != agent.Read:
		wrong = "The profile must be write or read."
	case d.Branch != "" && d.Repo == "":
		wrong = "A branch needs a repository."
	case !(d.MaxUSD >= 0): // written so that it also holds for NaN
		wrong = "The budget must be an amount of US dollars."
	case d.Results != "" && (!channelForm.MatchString(d.Results) || s.cfg.Results.Board == nil):
		wrong = "The results can go to a Slack channel, by its ID like C0123ABCD, if Slack is configured."
	}
	if wrong != "" {
		return nil, &tasks.InputError{Sentence: wrong}
	}
	one, err := s.series(d)
	if err != nil {
		return nil, &tasks.InputError{Sentence: fmt.Sprintf("The schedule %s. Write it like `every weekday at 07:00 Europe/Berlin` or `0 7 * * 1-5 Europe/Berlin`.", err)}
	}
	if s.cfg.Check != nil {
		t, err := s.cfg.Check(one.task(tasks.NewID(s.now(), sourceName, d.Name)))
		if err != nil {
			return nil, err
		}
		one.Repo, one.Prompt = t.Repo, t.Prompt
	}
	return one, nil
}
