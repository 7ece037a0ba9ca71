package web

import (
	"net/http"

	"github.com/errand-fleet/errand/store"
)

// healthView is the page of the fleet's health.
type healthView struct {
	fleet

	Machines []workerView
	Asked    bool // the services were
	Services []check
}

// healthPage shows every check with its remedy. The services are asked only where somebody wants to know: that takes a while.
func (h *Handler) healthPage(w http.ResponseWriter, r *http.Request) {
	v := healthView{fleet: h.fleet(r.Context()), Asked: r.URL.Query().Has("services")}
	for _, w := range v.Workers {
		v.Machines = append(v.Machines, newWorkerView(w))
	}
	if v.Asked && h.cfg.Examine != nil {
		for _, c := range h.cfg.Examine(r.Context()) {
			if c.Severity == "" {
				c.Severity = well
			}
			v.Services = append(v.Services, c)
		}
		v.Services = worstFirst(v.Services)
	}
	h.livePage(w, r, "health", v)
}

// Worst is the page's headline: nothing to mend, something to look at, or no task would be run.
func (v healthView) Worst() store.Severity {
	worst := well
	look := func(checks []check) {
		for _, c := range checks {
			if c.Severity == store.Fatal || c.Severity == store.Warning && worst != store.Fatal {
				worst = c.Severity
			}
		}
	}
	look(v.Checks)
	for _, w := range v.Workers {
		look(w.Checks)
	}
	if !v.OK {
		worst = store.Fatal
	}
	return worst
}
