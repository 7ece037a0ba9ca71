package web

import (
	"fmt"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
)

// fleetView is the fleet beside the list of tasks.
type fleetView struct {
	Trouble  string // why tasks would not be run now, or would fail, in sentences
	Running  int    // of Slots, on the workers that live
	Slots    int
	Waiting  int    // as the list has them
	Spent    string // today
	Queues   []queueView
	Machines []workerView
}

// queueView is a class of tasks.
type queueView struct {
	Class, Oldest           string
	Waiting, Later, Running int
}

// workerView is a worker, in words.
type workerView struct {
	ID, Host, Version, CLI string
	Pid, Running, Slots    int
	Memory                 string
	Level, State           string // how it is: a severity, and a word
	Started, Seen          time.Time
	Checks                 []check
}

func newFleetView(seen sight, now time.Time) fleetView {
	v := fleetView{Trouble: seen.trouble(now), Spent: cost(seen.spent), Waiting: seen.counts.Waiting}
	for _, q := range seen.queues {
		line := queueView{Class: q.Class, Waiting: q.Waiting, Later: q.Later, Running: q.Running}
		if q.Waiting > 0 {
			line.Oldest = waited(q.Oldest)
		}
		v.Queues = append(v.Queues, line)
	}
	for _, w := range workers(seen.workers) {
		v.Running, v.Slots = v.Running+w.Running, v.Slots+w.Slots
		v.Machines = append(v.Machines, newWorkerView(w))
	}
	return v
}

func waited(seconds float64) string {
	return legible.Age(time.Duration(seconds * float64(time.Second)))
}

func newWorkerView(w worker) workerView {
	v := workerView{
		ID: w.ID, Host: w.Host, Version: w.Version, Pid: w.Pid, Running: w.Running, Slots: w.Slots, Memory: size(w.Memory),
		Started: w.Started, Seen: w.Seen, Checks: w.Checks,
	}
	c, err := cliOf(store.Worker{Health: w.Health})
	v.CLI = c.Version
	switch {
	case err != nil || !c.OK:
		v.Level, v.State = "error", "cannot run tasks"
	case w.Draining:
		v.Level, v.State = "note", "shutting down"
	case warned(w.Checks):
		v.Level, v.State = "warning", "takes tasks, with a warning"
	default:
		v.Level, v.State = "ok", "takes tasks"
	}
	return v
}

func warned(checks []check) bool {
	for _, c := range checks {
		if c.Severity == store.Warning {
			return true
		}
	}
	return false
}

// size is an amount of memory in words; empty when it is not known.
func size(bytes int64) string {
	switch {
	case bytes <= 0:
		return ""
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
