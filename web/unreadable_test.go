package web

import (
	"net/http"
	"testing"

	"github.com/errand-fleet/errand/store"
)

// A record that cannot be read is shown as such, and the others are still shown.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	good, bad, worse := h.submit(1), h.submit(2), h.submit(3)
	if err := h.redis.HSet(t.Context(), "errand:task:"+bad, "task", "{").Err(); err != nil {
		t.Fatal(err)
	}
	if err := h.redis.Set(t.Context(), "errand:task:"+worse, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/api/tasks"} {
		h.contains(h.get(path), http.StatusOK, good, "Unreadable record "+bad, "Unreadable record "+worse)
	}
	for _, id := range []string{bad, worse} {
		for _, path := range []string{"/tasks/", "/api/tasks/"} {
			h.contains(h.get(path+id), http.StatusOK, "Unreadable record "+id, "redis-cli DEL errand:task:"+id)
		}
	}
	for _, path := range []string{"/costs", "/chat", "/fleet"} {
		h.contains(h.get(path), http.StatusOK)
	}
	h.contains(h.get("/api/health"), http.StatusOK, "unreadable records of live tasks: 1")
}
