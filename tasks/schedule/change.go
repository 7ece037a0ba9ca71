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
	"github.com/errand-fleet/errand/internal/timetable"
	"github.com/errand-fleet/errand/tasks"
)

// list has the schedules that people made.
const list = "schedules"

// maxUSD is as large as a budget in errand.yaml may be.
const maxUSD = 1e9

var channelForm = regexp.MustCompile(`^[CG][A-Z0-9]{2,30}$`)

// all returns the schedules of errand.yaml, and those that people made, by name, except those whose name is in
// errand.yaml. With an error it returns those of errand.yaml.
func (s *Source) all(ctx context.Context) ([]*series, error) {
	all := slices.Clone(s.fixed)
	entries, err := s.cfg.Lists.List(ctx, list)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		var made Schedule
		var one *series
		err := json.Unmarshal([]byte(entries[name]), &made)
		if err == nil {
			_, err = tasks.ParseBranch(made.Branch) // earlier versions did not check it
		}
		if err == nil {
			one, err = s.series(made)
		}
		if err == nil && !slices.ContainsFunc(s.fixed, func(one *series) bool { return one.Name == name }) {
			all = append(all, one)
		} else if told, _ := s.told.Swap(name, entries[name]); told != entries[name] { // once each
			s.log.Warn("a schedule made through the API is hidden by errand.yaml or cannot be read", "schedule",
				name, "err", err)
		}
	}
	return all, err
}

// find returns the schedule with a name, or nil, and an error if the visitor of the context may not change it: hidden
// if they may not see it.
func find(ctx context.Context, all []*series, name string, hidden error) (*series, error) {
	for _, one := range all {
		if one.Name == name {
			return one, mayChange(ctx, one.Repo, hidden)
		}
	}
	return nil, nil
}

// mayChange returns an error unless the visitor is an operator in a repository: hidden if they may see nothing there.
func mayChange(ctx context.Context, repo string, hidden error) error {
	role := tasks.VisitorOf(ctx).RoleIn(ctx, repo)
	switch {
	case role < tasks.Viewer:
		return hidden
	case role < tasks.Operator:
		return &tasks.RoleError{Sentence: fmt.Sprintf("This needs the role %s. Your role here is %s.",
			tasks.Operator, role)}
	}
	return nil
}

// ResumeSchedule ends the pause of a schedule. It returns [tasks.ErrNotFound] for an unknown name.
func (s *Source) ResumeSchedule(ctx context.Context, name string) (tasks.Schedule, error) {
	all, err := s.all(ctx)
	if err != nil {
		return tasks.Schedule{}, err
	}
	one, err := find(ctx, all, name, tasks.ErrNotFound)
	switch {
	case err != nil:
		return tasks.Schedule{}, err
	case one == nil:
		return tasks.Schedule{}, tasks.ErrNotFound
	}
	st, err := one.resume(ctx)
	return one.show(st), err
}

// PutSchedule makes a schedule, or changes one that was made before. A new one, or one with new times, begins with the
// next time. An *[tasks.InputError] says what is wrong with it.
func (s *Source) PutSchedule(ctx context.Context, d Schedule) (tasks.Schedule, error) {
	one, err := s.checked(d)
	if err == nil {
		where := "outside of repositories"
		if one.Repo != "" {
			where = "in " + one.Repo
		}
		err = mayChange(ctx, one.Repo, &tasks.RoleError{Sentence: "You may not make schedules " + where + "."})
	}
	if err != nil {
		return tasks.Schedule{}, err
	}
	before, err := s.changeable(ctx, one.Name)
	if err != nil {
		return tasks.Schedule{}, err
	}
	v := tasks.VisitorOf(ctx)
	one.By, one.Login, one.Partial, one.Made = v.Name, v.Login, v.Partial(), s.now().UTC()
	if err := s.permitted(ctx, one); err != nil {
		return tasks.Schedule{}, err
	}
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

// permitted returns an error if the maker of a schedule may not do themselves what it does, or if its answers may not
// be posted in its channel.
func (s *Source) permitted(ctx context.Context, one *series) error {
	profile, err := one.Profile, error(nil)
	if s.cfg.Permit != nil {
		profile, err = s.cfg.Permit(ctx, one.task(tasks.NewID(s.now(), sourceName, one.Name)))
	}
	if err == nil && profile != one.Profile {
		err = &tasks.InputError{Sentence: fmt.Sprintf("%s may only read %s. Make the schedule with the profile read.",
			one.Login, one.Repo)}
	}
	may := true
	if err == nil && one.Results != "" {
		may, err = s.cfg.Results.May(ctx, one.Results, one.Repo)
	}
	if err == nil && !may {
		err = &tasks.InputError{Sentence: fmt.Sprintf("%s is private, and its answers may not be posted in %s. An "+
			"operator can list it under channels: in errand.yaml, as `%[2]s: {repository: %[1]s}`.",
			one.Repo, one.Results)}
	}
	return err
}

// DropSchedule removes a schedule that was made through the API, also one that errand.yaml hides or that cannot be
// read, which counts as one of no repository. Its last task goes on. It returns [tasks.ErrNotFound] for an unknown
// name.
func (s *Source) DropSchedule(ctx context.Context, name string) error {
	entries, err := s.cfg.Lists.List(ctx, list)
	if err != nil {
		return err
	}
	body, ok := entries[name]
	if !ok {
		if one, err := find(ctx, s.fixed, name, tasks.ErrNotFound); one == nil || err != nil {
			return cmp.Or(err, tasks.ErrNotFound)
		}
		return inFile(name)
	}
	var made Schedule
	_ = json.Unmarshal([]byte(body), &made)
	if err = mayChange(ctx, made.Repo, tasks.ErrNotFound); err == nil {
		_, err = s.cfg.Lists.Remove(ctx, list, name)
	}
	return err
}

// inFile refuses to change a schedule.
func inFile(name string) error {
	return &tasks.InputError{Sentence: "The schedule " +
		name + " is in errand.yaml. Change it there, or choose another name."}
}

// changeable returns the schedule with a name if the visitor of the context may replace it, or nil if there may be a
// new one.
func (s *Source) changeable(ctx context.Context, name string) (*series, error) {
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	one, err := find(ctx, all, name, &tasks.InputError{Sentence: "The name " + name + " is taken. Choose another one."})
	switch {
	case err != nil:
		return nil, err
	case one != nil && slices.Contains(s.fixed, one):
		return nil, inFile(name)
	case one == nil && len(all) >= timetable.MaxSchedules:
		return nil, &tasks.InputError{Sentence: fmt.Sprintf("There are %d schedules already. Remove one of them first.",
			timetable.MaxSchedules)}
	}
	return one, nil
}

// checked returns the series of a new definition, as the policy allows it.
func (s *Source) checked(d Schedule) (*series, error) {
	d.Profile, d.Prompt = cmp.Or(d.Profile, agent.Write), strings.TrimSpace(d.Prompt)
	wrong := ""
	switch {
	case !timetable.Name.MatchString(d.Name):
		wrong = "The name must have lower-case letters, digits and dashes, at most 32, with a letter first."
	case d.Prompt == "":
		wrong = "The schedule has no prompt, which says what to do."
	case d.Profile != agent.Write && d.Profile != agent.Read:
		wrong = "The profile must be write or read."
	case d.Branch != "" && d.Repo == "":
		wrong = "A branch needs a repository."
	case !(d.MaxUSD >= 0 && d.MaxUSD <= maxUSD): // written so that it also holds for NaN
		wrong = "The budget must be an amount of US dollars."
	case d.Results != "" && (!channelForm.MatchString(d.Results) || s.cfg.Results.Board == nil):
		wrong = "The results can go to a Slack channel, by its ID like C0123ABCD, if Slack is configured."
	}
	if wrong != "" {
		return nil, &tasks.InputError{Sentence: wrong}
	}
	if _, err := tasks.ParseBranch(d.Branch); err != nil { // it would run the code of a fork, as ours
		return nil, err
	}
	one, err := s.series(d)
	if err != nil {
		return nil,
			&tasks.InputError{Sentence: fmt.Sprintf("The schedule %s. Write it like `every weekday at 07:00 "+
				"Europe/Berlin` or `0 7 * * 1-5 Europe/Berlin`.", err)}
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
