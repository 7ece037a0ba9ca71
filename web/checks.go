package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
)

// well is the severity of what was looked at and is as it should be.
const well store.Severity = "ok"

// check is one thing that was looked at: how it is, why that matters, and what to do about it.
type check = store.Finding

// cli is what a worker tells of its CLI, as far as it is shown here.
type cli struct {
	OK       bool     `json:"ok"`
	Path     string   `json:"path"`
	Version  string   `json:"version"`
	LoggedIn bool     `json:"logged_in"`
	Method   string   `json:"method"`
	Sandbox  string   `json:"sandbox"`
	Reach    string   `json:"reach"`
	Gateway  bool     `json:"gateway"`
	Private  bool     `json:"private"`
	Problem  string   `json:"problem"`
	Remedy   string   `json:"remedy"`
	Notices  []string `json:"notices"`
}

// cliOf reads what a worker tells. One that says nothing about its CLI is taken at its word.
func cliOf(w store.Worker) (c cli, err error) {
	if len(w.Health) == 0 {
		return cli{OK: true}, nil
	}
	err = json.Unmarshal(w.Health, &c)
	return c, err
}

// checkWorker judges a worker by what it tells.
func checkWorker(w store.Worker) (list []check) {
	add := func(level store.Severity, what, why, remedy string) {
		list = append(list, check{Severity: level, What: what, Why: why, Remedy: remedy})
	}
	c, err := cliOf(w)
	switch {
	case err != nil:
		add(store.Fatal, "what it tells of its CLI cannot be read", err.Error(), "Run the same version of errand everywhere.")
	case !c.OK:
		add(store.Fatal, "it can run no tasks: "+c.Problem, "Tasks go to other workers, or wait for one.", c.Remedy)
	case w.Draining:
		add(store.Note, "it is shutting down", "It takes no tasks any more, and hands back those that run.", "")
	default:
		add(well, "it takes tasks", "", "")
	}
	if c.Version != "" {
		add(well, "the CLI is version "+c.Version, c.Path, "")
	}
	if c.LoggedIn {
		add(well, "the CLI has a credential ("+c.Method+")", "Whether the model accepts it, only a run can tell.", "")
	}
	switch c.Sandbox {
	case "":
	case "none":
		add(store.Note, "runs are not in a sandbox", c.Reach, "docs/security.md says how to have one.")
	default:
		add(well, "runs are in a sandbox ("+c.Sandbox+")", "", "")
	}
	if c.Gateway {
		add(well, "the model's credential is kept from runs", "", "")
	}
	if c.Private {
		add(well, "the worker's memory and environment are kept from runs", "", "")
	}
	for _, notice := range c.Notices {
		add(store.Warning, notice, "", "")
	}
	list = append(list, severe(w.Notices)...)
	return worstFirst(list)
}

// severe gives findings without a severity that of what is well.
func severe(list []store.Finding) []check {
	list = slices.Clone(list)
	for i := range list {
		list[i].Severity = cmp.Or(list[i].Severity, well)
	}
	return list
}

// worstFirst sorts checks by how much somebody has to do something about them.
func worstFirst(list []check) []check {
	order := []store.Severity{store.Fatal, store.Warning, store.Note, well}
	slices.SortStableFunc(list, func(a, b check) int {
		return cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity))
	})
	return list
}

// check judges all but the workers, as far as they are there.
func (f fleet) check(now time.Time) (list []check) {
	add := func(level store.Severity, what, why, remedy string) {
		list = append(list, check{Severity: level, What: what, Why: why, Remedy: remedy})
	}
	for _, s := range f.Sources {
		switch {
		case s.Problem != "":
			add(store.Fatal, "no events come from "+s.Name, s.Problem, "Look at its token and settings, and at the front door's log.")
		case s.Last.IsZero():
			add(well, s.Name+": no event has come yet", "", "")
		default:
			add(well, s.Name+": the last event came at "+at(s.Last), "", "")
		}
	}
	list = append(list, severe(f.notices)...)
	if f.Redis != "ok" {
		add(store.Fatal, "Redis does not answer", f.Redis, "Look whether it runs, and whether REDIS_URL of the front door is right.")
		return worstFirst(list)
	}
	add(well, "Redis answers", "", "")
	list = append(list, f.Findings...)
	if len(f.Workers) == 0 {
		add(store.Fatal, "no worker is alive", "Tasks wait until there is one.", "Start a worker, with the same REDIS_URL.")
	}
	for _, c := range f.Credentials {
		name := "credential " + c.Name
		if c.Refused != "" {
			add(store.Fatal, name+": the model refuses it", c.Refused, "Set a valid one, or look at its account. The next run that succeeds ends this.")
		}
		switch {
		case c.Until.After(now):
			add(store.Fatal, name+": no run starts before "+at(c.Until), c.Why, "Wait, or raise the account's limit (docs/errors.md).")
		case c.Interval > 0:
			add(store.Note, fmt.Sprintf("%s: runs start %v apart", name, c.Interval), "The model throttles them.", "")
		}
	}
	return worstFirst(list)
}
