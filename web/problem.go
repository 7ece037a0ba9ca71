package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// problem is an error as RFC 9457 has it. The detail says what to do, where something can be done.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (h *Handler) problem(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the reader may be gone
}

// fail tells an error to programs as a problem and to people on a page.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, p problem) {
	if strings.HasPrefix(r.URL.Path, "/api/") || !wantsHTML(r) {
		h.problem(w, p)
		return
	}
	h.page(w, p.Status, "error", p)
}

// refuse turns an error of the desk into an answer. What is not one of the desk's own errors is Redis', and goes to the log.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case r.Context().Err() != nil: // nobody is there to read it
	case errors.Is(err, tasks.ErrNotFound):
		h.fail(w, r, problem{http.StatusNotFound, "No such task", "There is no such task, or no more: tasks are kept for a week after their end."})
	case errors.Is(err, tasks.ErrNotEnded):
		h.fail(w, r, problem{http.StatusConflict, "Not ended", "The task has not ended: cancel it first, or wait."})
	default:
		h.log.Warn("serve console", "path", r.URL.Path, "err", err)
		h.fail(w, r, problem{http.StatusServiceUnavailable, "Unavailable", "Redis does not answer. Try again in a moment."})
	}
}

// id reads the task's ID from the path; false when it is none, which is then answered.
func (h *Handler) id(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("id")
	if !tasks.ValidID(id) {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid ID", "A task's ID looks like 1700000000000000-chat-x."})
		return "", false
	}
	return id, true
}

// unrouted answers what no route takes: with what the mux would say about it, in our words.
func (h *Handler) unrouted(w http.ResponseWriter, r *http.Request, mux http.Handler) {
	says := verdict{header: w.Header()}
	mux.ServeHTTP(&says, r)
	if says.status == http.StatusMethodNotAllowed {
		h.fail(w, r, problem{says.status, "Method not allowed", "Here only " + w.Header().Get("Allow") + " is answered."})
		return
	}
	h.fail(w, r, problem{http.StatusNotFound, "Not found", "There is nothing here."})
}

// verdict listens to what the mux says, and keeps only its status and headers.
type verdict struct {
	header http.Header
	status int
}

func (v *verdict) Header() http.Header         { return v.header }
func (v *verdict) WriteHeader(status int)      { v.status = status }
func (v *verdict) Write(b []byte) (int, error) { return len(b), nil }

// soon runs a question to Redis and gives up when ctx does. A client of Redis may notice that only between its attempts, so the
// question is left behind; it ends by the client's own timeouts.
func soon(ctx context.Context, ask func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- ask(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
