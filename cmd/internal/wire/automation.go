package wire

import (
	"cmp"
	"maps"
	"os"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/hook"
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

// hooks returns the hooks by name. Without its variable, which workers do not have, a hook refuses all requests.
func hooks(c config.Config, getenv func(string) string) (list []hook.Hook) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Hooks)) {
		h := c.Routing.Hooks[name]
		secret, err := h.ReadSecret(getenv)
		if err != nil {
			secret = "" // checkHooks has reported it at a front door
		}
		list = append(list, hook.Hook{
			Name: name, Secret: secret.Reveal(), Template: h.Template, Repo: h.Repository, Branch: h.Branch,
			Profile: agent.Profile(cmp.Or(h.Profile, config.ProfileRead)), MaxUSD: h.Budget, PerHour: h.Rate,
		})
	}
	return list
}

// checkHooks reports the secrets of hooks that a front door cannot use.
func checkHooks(c config.Config, getenv func(string) string) (problems config.Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Hooks)) {
		if _, err := c.Routing.Hooks[name].ReadSecret(getenv); err != nil && c.Routing.Hooks[name].SecretVariable() != "" {
			problems = append(problems, config.Problem{
				Where: c.Paths.File + ": hooks." + name + ".secret", What: "cannot be used: " + err.Error(), Remedy: "set it to the output of `openssl rand -hex 32`, at front doors and at the sender",
			})
		}
	}
	return problems
}

// automation makes the sources of tasks that start without a person.
func (p *Parts) automation() ([]tasks.Source, error) {
	timed, err := schedule.New(schedule.Config{Schedules: schedules(p.Config), Memory: p.Store.Memos, Log: p.Log})
	if err != nil {
		return nil, err
	}
	called, err := hook.New(hook.Config{Hooks: hooks(p.Config, os.Getenv), Memory: p.Store.Memos, Limiter: p.Store.Memos, Log: p.Log})
	return []tasks.Source{timed, called}, err
}
