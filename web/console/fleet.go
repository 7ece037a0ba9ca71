package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

// fleetPageView is the page that says whether the fleet is well and what it does, with every check and its remedy.
type fleetPageView struct {
	view.Fleet
	Problems, Passed []view.Check // of Redis and the front door; the worst first
	Machines         []machineView
	Running, Slots   int
	Classes          []classView
	Keys             []credentialView
	Budget           string // of the fleet today; empty: it has none
	Hours            []hourView
	Ended            int  // in these hours
	Failed           int  // how many of them failed
	Operator         bool // the visitor may pause and cordon
	SeesServices     bool // the visitor may have the services checked
	Asked            bool // the services were checked
	Services         []view.Check
}

// hourView is what ended in an hour.
type hourView struct {
	Start                 time.Time
	Done, Stopped, Failed int
	Share                 string // the part of the busiest hour's number, up to 1
}

// machineView is a worker with its checks, formatted.
type machineView struct {
	view.Worker
	Name             string // for a cordon: its host, or its ID if the host has several workers
	CLI, Memory      string
	Level, State     string // a severity, and words
	Problems, Passed []view.Check
}

// classView is a class, formatted.
type classView struct {
	view.ClassTally
	Class    string
	Wait     string // the longest one; empty if no task waits
	Paused   *store.Halt
	P50, P95 string // of the waiting time, for tasks that started lately
}

// credentialView is a credential for the model, formatted.
type credentialView struct {
	Name, Level, State string
	Spent              string
	Windows            []windowView
	Until              time.Time // how long the state lasts; zero: unknown
}

// windowView is a window of a subscription, formatted.
type windowView struct {
	Name, Used, Percent string
	Resets              time.Time // zero: unknown
}

func newCredentialViews(all []capacity.CredentialUse, now time.Time) (list []credentialView) {
	for _, c := range all {
		v := credentialView{Name: c.Name, Level: "ok", State: "in use", Spent: display.Dollars(c.Spent)}
		if c.Until.After(now) {
			v.Level, v.State, v.Until = "warning", fmt.Sprintf("held: the model answered %d", c.Status), c.Until
		}
		for _, w := range c.Windows {
			one := windowView{
				Name: w.Name, Used: strconv.FormatFloat(w.Used, 'f', 2, 64), Percent: fmt.Sprintf("%.0f%%", 100*w.Used),
			}
			if w.ResetsAt.After(now) {
				one.Resets = w.ResetsAt
			} else if !w.ResetsAt.IsZero() { // not used since
				one.Used, one.Percent = "0", "0%"
			}
			v.Windows = append(v.Windows, one)
		}
		list = append(list, v)
	}
	return list
}

// The hours of the tasks that ended, and of those that count for waiting times.
const (
	endedHours = 24
	waitHours  = 3
)

// fleetPage shows the fleet. The services are checked on request only: that takes a while.
func (c *Console) fleetPage(w http.ResponseWriter, r *http.Request) error {
	ctx, now := r.Context(), c.View.Now()
	v := fleetPageView{
		Fleet: c.View.Fleet(ctx), SeesServices: view.SeesServices(ctx),
		Operator: people.VisitorOf(ctx).Operates(ctx, "") == nil,
		Budget:   view.USD(desk.FleetOf(c.View.Desk).DayBudget(ctx)),
	}
	v.Asked = v.SeesServices && r.URL.Query().Has("services")
	v.Problems, v.Passed = split(v.Checks)
	v.addMachines()
	v.Keys = newCredentialViews(v.CredentialUse, now)
	if v.Redis == "ok" { // otherwise there is nothing more to read
		hours, err := c.View.Hours(ctx, endedHours)
		if err != nil {
			return err
		}
		v.addClasses(hours, now)
		v.addHours(hours)
	}
	if v.Asked && c.Examine != nil {
		v.Services = view.WorstFirst(c.Examine(ctx))
	}
	return c.Out.LivePage(w, r, "fleet", v)
}

func (v *fleetPageView) addMachines() {
	hosts := map[string]int{}
	for _, w := range v.Workers {
		hosts[w.Host]++
	}
	for _, w := range v.Workers {
		m := newMachineView(w)
		if hosts[w.Host] != 1 || w.Host == "" {
			m.Name = w.ID
		}
		m.Problems, m.Passed = split(w.Checks)
		m.Problems = slices.DeleteFunc(m.Problems, func(c view.Check) bool {
			return c.Severity == store.Note && slices.Contains(v.Problems, c) // such as one about errand.yaml
		})
		v.Machines = append(v.Machines, m)
		v.Running, v.Slots = v.Running+w.Running, v.Slots+w.Slots
	}
}

// addClasses adds the classes with what waits and runs, and how long tasks waited lately.
func (v *fleetPageView) addClasses(hours []store.Hour, now time.Time) {
	for _, q := range v.Queues {
		if q.Pool != "" {
			continue // pauses are of the default pool's, as the button makes them
		}
		line := classView{ClassTally: v.OfClass(q.Class, now), Class: q.Class, Paused: q.Paused}
		if line.Longest > 0 {
			line.Wait = display.Age(line.Longest)
		}
		waited := store.Distribution{}
		for _, h := range hours[max(0, len(hours)-waitHours):] {
			waited = waited.Add(h.Waited[q.Class])
		}
		if d := waited.Quantile(1); d > 0 {
			line.P50, line.P95 = "≤ "+display.Age(waited.Quantile(0.5)), "≤ "+display.Age(waited.Quantile(0.95))
		}
		v.Classes = append(v.Classes, line)
	}
}

// addHours adds what ended in each hour.
func (v *fleetPageView) addHours(hours []store.Hour) {
	most := 0
	for _, h := range hours {
		line := hourView{Start: h.Start}
		for kind, n := range h.Ended {
			switch tasks.EndingKind(kind).Info().Class {
			case tasks.ClassDone:
				line.Done += n
			case tasks.ClassStopped, tasks.ClassRefused:
				line.Stopped += n
			default:
				line.Failed += n
			}
		}
		v.Hours = append(v.Hours, line)
		most = max(most, line.sum())
		v.Ended, v.Failed = v.Ended+line.sum(), v.Failed+line.Failed
	}
	for i, h := range v.Hours {
		v.Hours[i].Share = share(float64(h.sum()), float64(most))
	}
}

func (h hourView) sum() int { return h.Done + h.Stopped + h.Failed }

// split separates the checks that passed.
func split(checks []view.Check) (problems, passed []view.Check) {
	for _, c := range checks {
		if c.Severity == view.Good {
			passed = append(passed, c)
		} else {
			problems = append(problems, c)
		}
	}
	return problems, passed
}

// Worst returns the severity of the page's headline: Good, Warning, or Fatal if a check failed or no task would run.
func (v fleetPageView) Worst() store.Severity {
	checks := slices.Clone(v.Checks)
	for _, w := range v.Workers {
		checks = append(checks, w.Checks...)
	}
	worst := append(view.WorstFirst(checks), view.Check{})[0].Severity
	switch {
	case !v.OK:
		return store.Fatal
	case worst == store.Fatal || worst == store.Warning:
		return worst
	}
	return view.Good
}

// halt returns the handler of a button that pauses, resumes, cordons or uncordons what the path names.
func (c *Console) halt(do view.HaltFunc) respond.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := c.View.Halt(r, do); err != nil {
			return err
		}
		http.Redirect(w, r, "/fleet", http.StatusSeeOther)
		return nil
	}
}

func newMachineView(w view.Worker) machineView {
	cli, err := capacity.ReadHealth(w.Health)
	m := machineView{
		Worker: w, Name: w.Host, CLI: cli.Version, Memory: display.Bytes(w.Memory), Level: "ok", State: "takes tasks",
	}
	switch {
	case err != nil || !cli.OK:
		m.Level, m.State = "error", "cannot run tasks"
	case w.Draining:
		m.Level, m.State = "note", "shutting down"
	case w.Cordon != nil:
		m.Level, m.State = "warning", "cordoned"
	case w.Checks[0].Severity == store.Warning: // the worst is first
		m.Level, m.State = "warning", "takes tasks, with a warning"
	}
	return m
}
