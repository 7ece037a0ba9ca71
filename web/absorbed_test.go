package web

import (
	"net/http"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// The page of an absorbed task leads to the run that absorbed it: its events, log and answer.
func TestAbsorbedTask(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	person := func(t *tasks.Task) { t.Class = tasks.Interactive }
	first, second := h.submit(1, person), h.submit(2, person)
	c := h.Claim(first)
	if _, ok, err := c.Take(t.Context(), false, h.JSON(agent.Event{
		Kind: tasks.Absorbed, ToolID: first, Text: "Into account.",
	})); !ok || err != nil {
		t.Fatalf("take: %t, %v", ok, err)
	}
	h.contains(h.get("/tasks/"+second), http.StatusOK, "absorbed", "in the run of", first,
		"Into account.", "data-events")
	h.contains(h.get("/?state=absorbed"), http.StatusOK, second, "!"+first)
	for _, query := range []string{"", "?raw=1"} {
		a := h.get("/api/tasks/" + second + "/log" + query)
		if want := "/api/tasks/" + first + "/log" + query; a.StatusCode != http.StatusFound ||
			a.Header.Get("Location") != want {
			t.Errorf("its log: %s to %s, want %s", a.Status, a.Header.Get("Location"), want)
		}
	}
	h.log(first+".log", "the log of both\n")
	h.contains(h.get("/tasks/"+second+"/log"), http.StatusOK, "the log of both")
	ending := tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "It is blue."}, Covers: []string{second}}
	if err := c.EndWith(t.Context(), h.JSON(ending),
		store.Covered{IDs: ending.Covers, Ending: h.JSON(tasks.Ending{Kind: tasks.Answered})}); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/tasks/"+second), http.StatusOK, "answered", "It is blue.", first, "!data-events")
	h.contains(h.get("/tasks/"+first), http.StatusOK, "answered", "ended with it", second)
}
