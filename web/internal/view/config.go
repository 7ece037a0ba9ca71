package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// ConfigReport is the configuration and its problems.
type ConfigReport struct {
	Problems []Check `json:"problems"` // the worst first
	*config.Shown
	Redis string `json:"redis"` // "ok", or why the workers are unknown
}

// SeesServices reports whether a visitor may see how the services are set up, which tells of all repositories.
func SeesServices(ctx context.Context) bool {
	return people.VisitorOf(ctx).Has(policy.See) || people.VisitorOf(ctx).Operates(ctx, "") == nil
}

// Configured reports on the configuration of this front door and of the live workers.
func (v *Reader) Configured(ctx context.Context) (ConfigReport, error) {
	if err := people.VisitorOf(ctx).Operates(ctx, ""); err != nil {
		return ConfigReport{}, err
	}
	r := ConfigReport{
		Shown: cmp.Or(v.Config, &config.Shown{Groups: []config.Group{}, Tables: []config.Section{}}), Redis: "ok",
	}
	problems := append(checklist{}, v.Notices...)
	live, err := Await(ctx, v.Store.Workers.List)
	if err != nil {
		r.Redis = err.Error()
		problems.add(store.Fatal, "Redis does not answer, so the workers and their problems are unknown",
			err.Error(), "")
	}
	for _, w := range live {
		for _, found := range append(w.Notices, v.differs(w)...) {
			found.What = "worker on " + w.Host + ": " + found.What
			problems = append(problems, found)
		}
	}
	r.Problems = slices.DeleteFunc(WorstFirst(problems), func(c Check) bool { return c.Severity == Good })
	return r, nil
}

// differs warns of a worker with another errand.yaml or another shared setting.
func (v *Reader) differs(w store.Worker) []Check {
	if v.Config == nil || w.Digest == "" || w.Digest == v.Config.Digest {
		return nil
	}
	return []Check{{
		Severity: store.Warning,
		What:     "errand.yaml, or a setting that all processes share, differs from the front door's",
		Why:      "Tasks run by the settings of their worker, and are accepted and shown by those of the front door.",
		Remedy: "Give all processes the same errand.yaml, settings of Slack and GitHub, ERRAND_OBJECTS, " +
			"ERRAND_REDIS_REPLICAS, ERRAND_PUBLIC_URL, ERRAND_LINK_DAYS and ERRAND_RUN_LIMIT, and restart them.",
	}}
}
