package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Configuration is what is in force in a front door, without secrets.
type Configuration struct {
	Groups []SettingGroup `json:"groups"` // of environment variables
	File   string         `json:"file"`   // the path of errand.yaml; empty: none
	Tables []Table        `json:"tables"` // the content of errand.yaml

	Digest string `json:"-"` // of errand.yaml and the settings that all processes share
}

// SettingGroup is the settings of one subject.
type SettingGroup struct {
	Title    string    `json:"title"`
	Settings []Setting `json:"settings"`
}

// Given returns the settings that the environment sets, or the others.
func (g SettingGroup) Given(given bool) []Setting {
	return slices.DeleteFunc(slices.Clone(g.Settings), func(s Setting) bool {
		return s.Origin == "environment" != given
	})
}

// Setting is an environment variable.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // of a secret only whether it is set
	Origin string `json:"from"`  // "environment", "default", "computed" or "not set"
	About  string `json:"about"` // one sentence
}

// Table is a section of errand.yaml.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// ConfigReport is the configuration and its problems.
type ConfigReport struct {
	Problems []Check `json:"problems"` // the worst first
	*Configuration
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
		Configuration: cmp.Or(v.Config, &Configuration{Groups: []SettingGroup{}, Tables: []Table{}}),
		Redis:         "ok",
	}
	problems := append(checklist{}, v.Notices...)
	live, err := Await(ctx, v.Store.Workers.List)
	if err != nil {
		r.Redis = err.Error()
		problems.add(store.Fatal, "Redis does not answer, so the workers and their problems are unknown",
			err.Error(), "")
	}
	for _, w := range live {
		for _, found := range append(w.Notices, v.Config.differs(w)...) {
			found.What = "worker on " + w.Host + ": " + found.What
			problems = append(problems, found)
		}
	}
	r.Problems = slices.DeleteFunc(WorstFirst(problems), func(c Check) bool { return c.Severity == Good })
	return r, nil
}

// differs warns of a worker with another errand.yaml or another shared setting.
func (c *Configuration) differs(w store.Worker) []Check {
	if c == nil || w.Digest == "" || w.Digest == c.Digest {
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
