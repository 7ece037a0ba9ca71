package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Configuration is what is in force in a front door, without secrets.
type Configuration struct {
	Groups []SettingGroup `json:"groups"` // of environment variables
	File   string         `json:"file"`   // the path of errand.yaml; empty: none
	Tables []Table        `json:"tables"` // the content of errand.yaml

	// Published is what this process would publish if it were a worker; see [store.Worker].
	Published map[string]string `json:"-"`
	// Shared reports whether a published setting has to be the same everywhere.
	Shared func(name string) bool `json:"-"`
}

// SettingGroup is the settings of one subject.
type SettingGroup struct {
	Title    string    `json:"title"`
	Settings []Setting `json:"settings"`
}

// Setting is an environment variable.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // of a secret only whether it is set
	Origin string `json:"from"`  // "environment", "default", "computed" or "not set"
	About  string `json:"about"` // one sentence
}

// Given reports whether the environment sets the value.
func (s Setting) Given() bool { return s.Origin == "environment" }

// Table is a section of errand.yaml.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// WorkerSettings compares the settings of a live worker with those of the front door.
type WorkerSettings struct {
	ID          string       `json:"id"`
	Host        string       `json:"host"`
	Unknown     bool         `json:"unknown,omitempty"` // it publishes none: it runs an older version
	Differences []Difference `json:"differences"`
}

// Difference is a setting that a worker and the front door do not have in common.
type Difference struct {
	Name   string `json:"name"`
	Here   string `json:"here"` // at the front door
	There  string `json:"there"`
	Shared bool   `json:"shared"` // it has to be the same everywhere
}

// ConfigReport is the configuration, its problems and the workers that differ.
type ConfigReport struct {
	Problems []Check `json:"problems"` // the worst first
	*Configuration
	Workers []WorkerSettings `json:"workers"`
	Redis   string           `json:"redis"` // "ok", or why the workers are unknown
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
		Workers:       []WorkerSettings{}, Redis: "ok",
	}
	problems := append(checklist{}, v.Notices...)
	live, err := Await(ctx, v.Store.Workers.List)
	if err != nil {
		r.Redis = err.Error()
		problems.add(store.Fatal, "Redis does not answer, so the workers' settings are unknown", err.Error(), "")
	}
	for _, w := range live {
		r.Workers = append(r.Workers, v.Config.compare(w))
		for _, found := range append(w.Notices, v.Config.differs(w)...) {
			found.What = "worker on " + w.Host + ": " + found.What
			problems = append(problems, found)
		}
	}
	r.Problems = slices.DeleteFunc(WorstFirst(problems), func(c Check) bool { return c.Severity == Good })
	return r, nil
}

// compare lists what a worker has set in another way.
func (c *Configuration) compare(w store.Worker) WorkerSettings {
	s := WorkerSettings{ID: w.ID, Host: w.Host, Unknown: len(w.Settings) == 0, Differences: []Difference{}}
	if c == nil || s.Unknown {
		return s
	}
	all := maps.Clone(w.Settings)
	maps.Copy(all, c.Published)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		here, set := c.Published[name]
		there, also := w.Settings[name]
		if here == there && set == also {
			continue
		}
		s.Differences = append(s.Differences, Difference{
			name, cmp.Or(here, "not set"), cmp.Or(there, "not set"), c.Shared(name),
		})
	}
	return s
}

// differs warns of a worker with other shared settings.
func (c *Configuration) differs(w store.Worker) []Check {
	var names []string
	for _, d := range c.compare(w).Differences {
		if d.Shared {
			names = append(names, d.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Check{{
		Severity: store.Warning, What: "its settings differ from the front door's: " + strings.Join(names, ", "),
		Why:    "Tasks run by the settings of their worker, and are accepted and shown by those of the front door.",
		Remedy: "Give all processes the same settings and errand.yaml, and restart them.",
	}}
}

// Warns reports whether a setting differs that has to be the same everywhere.
func (s WorkerSettings) Warns() bool {
	return slices.ContainsFunc(s.Differences, func(d Difference) bool { return d.Shared })
}
