package assemble

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/automation"
	"github.com/errand-fleet/errand/tasks/webhook"
	"github.com/errand-fleet/errand/web"
)

// schedules returns the schedules by name. Its error is one that config has reported.
func schedules(c config.Config) (list []automation.Automation, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Schedules)) {
		s := c.Routing.Schedules[name]
		a := declared(name, s.Automation, config.ProfileWrite)
		a.Prompt, a.When = s.Prompt, s.When
		if a.Times, err = s.Times(); err != nil {
			return nil, fmt.Errorf("schedule %s: %w", name, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// hooks returns the hooks by name. Without its variable, which workers do not have, a hook refuses all requests.
func hooks(c config.Config, getenv func(string) string) (list []automation.Automation) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Hooks)) {
		h := c.Routing.Hooks[name]
		secret, _ := h.Secret.Read(getenv) // checkSigningSecrets reports errors at a front door
		a := declared(name, h.Automation, config.ProfileRead)
		a.Prompt, a.PerHour, a.Secret = h.Template, h.Rate, secret.Reveal()
		list = append(list, a)
	}
	return list
}

// declared returns what schedules and hooks have in common.
func declared(name string, a config.Automation, profile string) automation.Automation {
	return automation.Automation{
		Name: name, Repo: a.Repository, Branch: a.Branch, Profile: agent.Profile(cmp.Or(a.Profile, profile)),
		MaxUSD: a.Budget, Results: a.Results,
	}
}

// webhooks returns the webhooks by name. Workers do not have their secrets.
func webhooks(c config.Config, getenv func(string) string) (list []webhook.Webhook) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Webhooks)) {
		w := c.Routing.Webhooks[name]
		secret, _ := w.Secret.Read(getenv) // likewise
		list = append(list, webhook.Webhook{
			Name: name, URL: w.URL, Secret: secret.Reveal(), Repositories: w.Repositories,
		})
	}
	return list
}

// checkSigningSecrets reports the secrets of hooks and webhooks that a front door cannot use.
func checkSigningSecrets(c config.Config, getenv func(string) string) (problems config.Problems) {
	all := c.Routing.SigningSecrets()
	for _, where := range slices.Sorted(maps.Keys(all)) {
		if _, err := all[where].Read(getenv); err != nil && all[where].Variable() != "" {
			problems = append(problems, c.Problem("cannot be used: "+err.Error(),
				"set it to the output of `openssl rand -hex 32`, at front doors and at the other side",
				strings.Split(where, ".")...))
		}
	}
	return problems
}

// webhookBody returns what webhooks send of a task: what the API returns.
func (p *Parts) webhookBody(ctx context.Context, id string) (body any, ended time.Time, err error) {
	s, err := p.Desk.Status(ctx, id)
	if err != nil {
		return nil, s.Ended, err
	}
	body, err = web.Task(ctx, s, p.reviews())
	return body, s.Ended, err
}

// reviews returns the reviews of the sources.
func (p *Parts) reviews() map[string]tasks.Reviewer {
	all := map[string]tasks.Reviewer{}
	for _, s := range p.Sources {
		if r := s.Capabilities().Reviews; r != nil {
			all[s.Name()] = r
		}
	}
	return all
}

// automation makes the sources of tasks that start without a person.
func (p *Parts) automation(notices *slackBoard) error {
	cfg := automation.Config{
		Memory: p.Store.Memos, Limiter: p.Store.Memos, Inbox: p.inbox, Log: p.Log,
	}
	cfg.May = func(ctx context.Context, channel, repo string) (bool, error) {
		return p.policy.MayPost(ctx, channel, repo)
	}
	if notices.slack != nil {
		cfg.Board = notices
	}
	var err error
	if cfg.Automations, err = schedules(p.Config); err != nil {
		return err
	}
	if p.schedules, err = automation.New(automation.Schedule, cfg); err != nil {
		return err
	}
	cfg.Automations = hooks(p.Config, os.Getenv)
	called, err := automation.New(automation.Hook, cfg)
	if err != nil {
		return err
	}
	p.Sources = append(p.Sources, p.schedules, called)
	return nil
}
