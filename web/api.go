package web

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const (
	defaultList = 50
	maxList     = 200
)

// query reads which tasks are asked for; a problem's status of 0 means that all is well.
func query(q url.Values) (state string, limit int, before string, p problem) {
	bad := func(detail string) problem { return problem{http.StatusBadRequest, "Invalid query", detail} }
	state, limit, before = q.Get("state"), defaultList, q.Get("before")
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxList {
			return "", 0, "", bad(fmt.Sprintf("A limit is a number from 1 to %d.", maxList))
		}
		limit = n
	}
	if !slices.Contains([]store.State{"", store.Waiting, store.Running, store.Absorbed, store.Ended}, store.State(state)) {
		return "", 0, "", bad("A state is one of waiting, running, absorbed and ended.")
	}
	if before != "" && !tasks.ValidID(before) {
		return "", 0, "", bad("Before is a task's ID, such as next in the answer before.")
	}
	return state, limit, before, problem{}
}

// tasks lists what a query asks for; false when that was answered with an error.
func (h *Handler) tasks(w http.ResponseWriter, r *http.Request) (listing, bool) {
	state, limit, before, p := query(r.URL.Query())
	if p.Status != 0 {
		h.fail(w, r, p)
		return listing{}, false
	}
	found, err := h.cfg.Desk.List(r.Context(), state, limit, before)
	if err != nil {
		h.refuse(w, r, err)
		return listing{}, false
	}
	l := listing{Tasks: make([]view, 0, len(found))}
	for _, s := range found {
		l.Tasks = append(l.Tasks, show(s))
	}
	if len(found) == limit {
		l.Next = found[limit-1].Task.ID
	}
	return l, true
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	if l, ok := h.tasks(w, r); ok {
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
	if s, ok := h.ask(w, r, h.cfg.Desk.Retry); ok {
		h.json(w, http.StatusAccepted, show(s))
	}
}
