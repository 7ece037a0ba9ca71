package web

import (
	"fmt"
	"net/http"
	"time"
)

// row is a task in the list, in words.
type row struct {
	ID, Title, Source, Actor string
	State, Ending            string
	Created                  time.Time
	Age, Cost                string
}

func (h *Handler) row(v view) row {
	r := row{
		ID: v.Task.ID, Title: v.Title, Source: v.Task.Source, Actor: v.Task.Actor, State: v.State,
		Created: v.Created, Age: age(h.now().Sub(v.Created)),
	}
	if v.Ending != nil {
		r.Ending = string(v.Ending.Kind)
		r.Cost = cost(v.Ending.CostUSD())
	}
	return r
}

// age is a duration as one glances at it.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func cost(usd float64) string {
	if usd <= 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}

// listView is the page of tasks.
type listView struct {
	Rows   []row
	State  string   // that is shown; empty: all
	States []string // that can be
	Next   string
}

func (h *Handler) listPage(w http.ResponseWriter, r *http.Request) {
	l, ok := h.tasks(w, r)
	if !ok {
		return
	}
	v := listView{State: r.URL.Query().Get("state"), States: []string{"", "waiting", "running", "absorbed", "ended"}, Next: l.Next}
	for _, t := range l.Tasks {
		v.Rows = append(v.Rows, h.row(t))
	}
	h.page(w, http.StatusOK, "list", v)
}

// cancelForm is what the Stop button of a task's page does.
func (h *Handler) cancelForm(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.stopTask); ok {
		http.Redirect(w, r, "/tasks/"+s.Task.ID, http.StatusSeeOther)
	}
}

// retryForm is what the Retry button does.
func (h *Handler) retryForm(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.cfg.Desk.Retry); ok {
		http.Redirect(w, r, "/tasks/"+s.Task.ID, http.StatusSeeOther)
	}
}
