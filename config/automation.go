package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/timetable"
)

// Schedule configures tasks that errand starts by itself at set times.
type Schedule struct {
	When       string  `yaml:"when"`       // see timetable.Parse
	Prompt     string  `yaml:"prompt"`     // what to do
	Repository string  `yaml:"repository"` // "owner/name"; empty = none
	Branch     string  `yaml:"branch"`     // to start from; empty = the repository's base
	Profile    string  `yaml:"profile"`    // ProfileWrite or ProfileRead; empty = write
	Budget     float64 `yaml:"budget"`     // of a task, in US dollars; 0 = the one of budgets
}

// maxSchedules keeps a look at all of them short.
const maxSchedules = 100

// automationName describes the names of schedules, which are part of task IDs.
var automationName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

func (v routingCheck) schedules(r Routing) {
	if len(r.Schedules) > maxSchedules {
		v.add(fmt.Sprintf("has more than %d entries", maxSchedules), "combine some of them", "schedules")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Schedules)) {
		s, path := r.Schedules[name], []string{"schedules", name}
		v.automation(r, name, s.Repository, s.Profile, path)
		if _, err := timetable.Parse(s.When); err != nil {
			v.add(err.Error(), "write it like `every weekday at 07:00 Europe/Berlin` or `0 7 * * 1-5 Europe/Berlin`", append(path, "when")...)
		}
		if strings.TrimSpace(s.Prompt) == "" {
			v.add("has no prompt", "add `prompt: …`, which says what to do", path...)
		}
		if s.Branch != "" && s.Repository == "" {
			v.add("is of no repository", "add `repository: owner/name`", append(path, "branch")...)
		}
		if !(s.Budget >= 0 && s.Budget <= maxBudget) { // written so that it also holds for .nan
			v.add("is not an amount", "write US dollars, like 2 or 0.5", append(path, "budget")...)
		}
	}
}

// automation checks what all tasks without a person have.
func (v routingCheck) automation(r Routing, name, repository, profile string, path []string) {
	if !automationName.MatchString(name) {
		v.add("cannot be a name", "write lower-case letters, digits and dashes, at most 32, with a letter first", path...)
	}
	if _, listed := r.Repository(repository); repository != "" {
		switch {
		case !fullName.MatchString(repository):
			v.add(fmt.Sprintf("is %q, which is not the name of a repository", repository), "write it as owner/name", append(path, "repository")...)
		case !listed && len(r.Repositories) > 0:
			v.add(fmt.Sprintf("is %q, which is not among the repositories", repository), "list it under repositories or correct its spelling", append(path, "repository")...)
		}
	}
	if !slices.Contains([]string{"", ProfileWrite, ProfileRead}, profile) {
		v.add(fmt.Sprintf("must be `write` or `read`, not %q", profile), "", append(path, "profile")...)
	}
}
