package web

import (
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// tasks lists what a query asks for; false when that was answered with an error.
func (h *Handler) tasks(w http.ResponseWriter, r *http.Request) (listing, tasks.Filter, bool) {
	filter, p := query(r.URL.Query())
	if p.Status != 0 {
		h.fail(w, r, p)
		return listing{}, filter, false
	}
	found, err := h.cfg.Desk.List(r.Context(), filter)
	if err != nil {
		h.refuse(w, r, err)
		return listing{}, filter, false
	}
	l := listing{Tasks: make([]view, 0, len(found.Tasks)), Next: found.Next}
	for _, s := range found.Tasks {
		l.Tasks = append(l.Tasks, show(s))
	}
	return l, filter, true
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	if l, _, ok := h.tasks(w, r); ok {
		h.json(w, http.StatusOK, l)
	}
}

func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.cfg.Desk.Status); ok {
		h.json(w, http.StatusOK, show(s))
	}
}

func (h *Handler) cancel(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.stopTask); ok {
		h.json(w, http.StatusAccepted, show(s))
	}
}

func (h *Handler) retry(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.retryTask); ok {
		h.json(w, http.StatusAccepted, show(s))
	}
}
