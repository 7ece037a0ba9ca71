package wire

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/hook"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/schedule"
	"github.com/errand-fleet/errand/tasks/webhook"
	"github.com/errand-fleet/errand/web"
)

// schedules returns the schedules by name.
func schedules(c config.Config) (list []schedule.Schedule) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Schedules)) {
		s := c.Routing.Schedules[name]
		list = append(list, schedule.Schedule{
			Name: name, When: s.When, Prompt: s.Prompt, Repo: s.Repository, Branch: s.Branch,
			Profile: agent.Profile(cmp.Or(s.Profile, config.ProfileWrite)), MaxUSD: s.Budget, Results: s.Results,
		})
	}
	return list
}

// hooks returns the hooks by name. Without its variable, which workers do not have, a hook refuses all requests.
func hooks(c config.Config, getenv func(string) string) (list []hook.Hook) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Hooks)) {
		h := c.Routing.Hooks[name]
		secret, _ := h.Secret.Read(getenv) // checkSigningSecrets reports errors at a front door
		list = append(list, hook.Hook{
			Name: name, Secret: secret.Reveal(), Template: h.Template, Repo: h.Repository, Branch: h.Branch,
			Profile: agent.Profile(cmp.Or(h.Profile, config.ProfileRead)), MaxUSD: h.Budget, PerHour: h.Rate,
			Results: h.Results,
		})
	}
	return list
}

// webhooks returns the webhooks by name. Workers do not have their secrets.
func webhooks(c config.Config, getenv func(string) string) (list []webhook.Webhook) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Webhooks)) {
		w := c.Routing.Webhooks[name]
		secret, _ := w.Secret.Read(getenv) // likewise
		one := webhook.Webhook{Name: name, URL: w.URL, Secret: secret.Reveal(), Repositories: w.Repositories}
		for _, kind := range w.Endings {
			one.Endings = append(one.Endings, tasks.EndingKind(kind))
		}
		list = append(list, one)
	}
	return list
}

// checkSigningSecrets reports the secrets of hooks and webhooks that a front door cannot use.
func checkSigningSecrets(c config.Config, getenv func(string) string) (problems config.Problems) {
	all := c.Routing.SigningSecrets()
	for _, where := range slices.Sorted(maps.Keys(all)) {
		if _, err := all[where].Read(getenv); err != nil && all[where].Variable() != "" {
			problems = append(problems, config.Problem{
				Where: c.Where(strings.Split(where, ".")...), What: "cannot be used: " + err.Error(),
				Remedy: "set it to the output of `openssl rand -hex 32`, at front doors and at the other side",
			})
		}
	}
	return problems
}

// webhookBody returns what webhooks send of a task: what the API returns.
func (p *Parts) webhookBody(ctx context.Context, id string) (body any, ended time.Time, err error) {
	s, err := p.Desk.Status(ctx, id)
	return web.Task(s), s.Ended, err
}

// automation makes the sources of tasks that start without a person.
func (p *Parts) automation(notices *slackBoard) ([]tasks.Source, error) {
	results := intake.Results{Log: p.Log, May: func(ctx context.Context, channel, repo string) (bool, error) {
		return p.policy.MayPost(ctx, channel, repo)
	}}
	if notices.slack != nil {
		results.Board = notices
	}
	timed, err := schedule.New(schedule.Config{
		Schedules: schedules(p.Config), Memory: p.Store.Memos, Results: results, Log: p.Log,
	})
	if err != nil {
		return nil, err
	}
	called, err := hook.New(hook.Config{
		Hooks: hooks(p.Config, os.Getenv), Memory: p.Store.Memos, Limiter: p.Store.Memos, Results: results, Log: p.Log,
	})
	return []tasks.Source{timed, called}, err
}
