package web

import (
	"encoding/json"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// view is a task as the outside sees it.
type view struct {
	tasks.Status
	Title    string `json:"title"`              // the beginning of its prompt
	Sentence string `json:"sentence,omitempty"` // how it ended, where the answer does not speak for itself
}

// show leaves out the return address: it is the source's own, and may hold what opens doors there.
func show(s tasks.Status) view {
	s.Task.Origin = nil
	v := view{Status: s, Title: s.Task.Title()}
	if s.Ending != nil {
		v.Sentence = s.Ending.Sentence()
	}
	return v
}

// listing is a page of tasks, newest first.
type listing struct {
	Tasks []view `json:"tasks"`
	Next  string `json:"next,omitempty"` // what to ask for as before to get the older ones; empty: there are none
}

func (h *Handler) json(w http.ResponseWriter, status int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		h.log.Error("marshal answer", "err", err)
		h.problem(w, problem{http.StatusInternalServerError, "Internal error", "The answer could not be written. The log says more."})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader may be gone
}
