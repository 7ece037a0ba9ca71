package console

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/internal/view"
)

// workerView is a worker, formatted.
type workerView struct {
	view.Worker
	CLI, Memory  string
	Level, State string // a severity, and words
}

func newWorkerViews(workers []view.Worker) []workerView {
	list := make([]workerView, len(workers))
	for i, w := range workers {
		cli, err := view.ParseCLI(w.Health)
		list[i] = workerView{Worker: w, CLI: cli.Version, Memory: memory(w.Memory), Level: "ok", State: "takes tasks"}
		switch {
		case err != nil || !cli.OK:
			list[i].Level, list[i].State = "error", "cannot run tasks"
		case w.Draining:
			list[i].Level, list[i].State = "note", "shutting down"
		case w.Checks[0].Severity == store.Warning: // the worst is first
			list[i].Level, list[i].State = "warning", "takes tasks, with a warning"
		}
	}
	return list
}

// memory formats an amount of memory; it returns "" if it is unknown.
func memory(bytes int64) string {
	switch {
	case bytes <= 0:
		return ""
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// healthView is the page of the fleet's health.
type healthView struct {
	view.Fleet

	Machines []workerView
	Operator bool // the visitor may see the configuration
	Asked    bool // the services were checked
	Services []view.Check
}

// healthPage shows every check with its remedy. The services are checked on request only: that takes a while.
func (c *Console) healthPage(w http.ResponseWriter, r *http.Request) error {
	v := healthView{Fleet: c.view.Fleet(r.Context()), Asked: r.URL.Query().Has("services")}
	v.Machines, v.Operator = newWorkerViews(v.Workers), view.Configures(r.Context())
	if v.Asked && c.examine != nil {
		v.Services = view.WorstFirst(c.examine(r.Context()))
	}
	return c.out.LivePage(w, r, "health", v)
}

// Worst returns the severity of the page's headline: Good, Warning, or Fatal if a check failed or no task would run.
func (v healthView) Worst() store.Severity {
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
