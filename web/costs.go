package web

import (
	"net/http"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// How many rows there are in an answer, and on a page. The file has all.
const (
	costRows     = 5000
	costPageRows = 300
)

// costs is the table as programs get it.
type costs struct {
	From string            `json:"from"` // days, UTC, both included
	To   string            `json:"to"`
	By   []tasks.CostGroup `json:"by"`
	tasks.Costs
}

// sum sums up what a query asks for; false when that was answered with an error.
func (h *Handler) sum(w http.ResponseWriter, r *http.Request, limit int) (tasks.Costs, costsQuery, bool) {
	q, p := readCosts(r.URL.Query(), h.now())
	if p.Status != 0 {
		h.fail(w, r, p)
		return tasks.Costs{}, q, false
	}
	q.Limit = limit
	found, err := h.cfg.Desk.Costs(r.Context(), q.CostQuery)
	if err != nil {
		h.refuse(w, r, err)
		return tasks.Costs{}, q, false
	}
	return found, q, true
}

func (h *Handler) costs(w http.ResponseWriter, r *http.Request) {
	limit := costRows
	format := r.URL.Query().Get("format")
	switch format {
	case "", "json":
	case "csv":
		limit = 0 // it is sent line by line
	default:
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid query", "A format is json or csv."})
		return
	}
	found, q, ok := h.sum(w, r, limit)
	if !ok {
		return
	}
	c := costs{q.First.Format(time.DateOnly), q.Last.Format(time.DateOnly), q.By, found}
	if format == "csv" {
		h.costsCSV(w, c)
		return
	}
	h.json(w, http.StatusOK, c)
}
