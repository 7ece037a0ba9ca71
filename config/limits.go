package config

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options are what a request may name for itself. Empty = whatever the CLI takes. Models also bounds runs that name none.
type Options struct {
	Models  []string `yaml:"models"`
	Efforts []string `yaml:"efforts"`
}

// optionName is what may stand in the CLI's command line as a model or a level of effort.
var optionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,199}$`)

func (v routingCheck) options(r Routing) {
	for _, o := range []struct {
		key   string
		names []string
	}{{"models", r.Options.Models}, {"efforts", r.Options.Efforts}} {
		for _, name := range o.names {
			if !optionName.MatchString(name) {
				v.add(fmt.Sprintf("has %q", name), "write names that the CLI takes, like opus or high", "options", o.key)
			}
		}
	}
}

// Limits is how many tasks run at once, in all of the fleet. 0 = no limit.
type Limits struct {
	Repository int `yaml:"repository"` // of each repository
	User       int `yaml:"user"`       // of each person who asks
	Credential int `yaml:"credential"` // with each credential for the model
}

// Budgets is what tasks may cost, in US dollars at list price. 0 = no budget. A day is one of UTC.
type Budgets struct {
	Task       float64 `yaml:"task"`       // one task, whatever it asks for itself
	User       float64 `yaml:"user"`       // of each person who asks, a day
	Channel    float64 `yaml:"channel"`    // of each channel in which tasks are asked for, a day
	Repository float64 `yaml:"repository"` // of each repository, a day
	Day        float64 `yaml:"day"`        // of all of the fleet, a day
	Reserve    float64 `yaml:"reserve"`    // what a task that names no maximum is expected to cost; 0 = 1
	Contact    string  `yaml:"contact"`    // who can raise them, told to whoever is refused
}

// maxBudget keeps sums of millionths exact.
const maxBudget = 1e9

func (v routingCheck) limits(r Routing) {
	var written struct {
		Limits map[string]yaml.Node `yaml:"limits"`
	}
	_ = v.root.Decode(&written) // what has another form has been told
	for _, l := range []struct {
		name string
		n    int
	}{{"repository", r.Limits.Repository}, {"user", r.Limits.User}, {"credential", r.Limits.Credential}} {
		// yaml.v3 takes 0.5 for an int and makes it 0, which here would be no limit.
		if value := written.Limits[l.name]; l.n < 0 || value.ShortTag() == "!!float" {
			v.add("is not a number of runs", "write how many there may be at once, like 3, or 0 for no limit", "limits", l.name)
		}
	}
}

func (v routingCheck) budgets(r Routing) {
	b := r.Budgets
	for _, amount := range []struct {
		name string
		usd  float64
	}{
		{"task", b.Task},
		{"user", b.User},
		{"channel", b.Channel},
		{"repository", b.Repository},
		{"day", b.Day},
		{"reserve", b.Reserve},
	} {
		if !(amount.usd >= 0 && amount.usd <= maxBudget) { // so that it holds for .nan, too
			v.add("is not an amount", "write US dollars, like 20 or 2.5, or 0 for no budget", "budgets", amount.name)
		}
	}
	if strings.ContainsAny(strings.TrimSpace(b.Contact), "\r\n") || len(b.Contact) > 200 {
		v.add("is not one short line", "write who can raise a budget, like #platform or ann@example.com", "budgets", "contact")
	}
}
