package wire

import (
	"cmp"
	"maps"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks/schedule"
)

// schedules returns the schedules by name.
func schedules(c config.Config) (list []schedule.Schedule) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Schedules)) {
		s := c.Routing.Schedules[name]
		list = append(list, schedule.Schedule{
			Name: name, When: s.When, Prompt: s.Prompt, Repo: s.Repository, Branch: s.Branch, Profile: agent.Profile(cmp.Or(s.Profile, config.ProfileWrite)),
			MaxUSD: s.Budget,
		})
	}
	return list
}
