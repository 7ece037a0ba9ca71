package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/tasks"
)

func TestQueuesAreShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	a := h.get("/queues/")
	h.contains(a, http.StatusOK, "Asynq", `window.FLAG_ROOT_PATH="\/queues"`, `src="/static/queues.js"`,
		"!fonts.googleapis")
	if got := a.Header.Get("Content-Security-Policy"); !strings.Contains(got, "script-src 'self' 'unsafe-inline'") {
		t.Errorf("the policy blocks its inline script: %q", got)
	}
	script := h.get("/queues/static/js/main.5adda2da.chunk.js")
	if got := script.Header.Get("Content-Type"); script.StatusCode != http.StatusOK ||
		!strings.HasPrefix(got, "application/javascript") {
		t.Errorf("its script is %s %s", script.Status, got)
	}
	h.contains(h.get("/queues/api/queues"), http.StatusOK, `"queue":"interactive"`)
	h.contains(h.get("/queues/api/queues/interactive/pending_tasks"), http.StatusOK,
		`"id":"`+id+`"`, `"payload":"test: Do it\n`+id+`"`)
	if a := h.get("/queues"); a.Header.Get("Location") != "/queues/" {
		t.Errorf("/queues: %s to %q", a.Status, a.Header.Get("Location"))
	}
}

func TestQueuesAreOnlyToLookAt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for _, path := range []string{
		"POST /queues/api/queues/interactive:pause", "DELETE /queues/api/queues/interactive",
		"DELETE /queues/api/queues/interactive/pending_tasks/" + id,
		"POST /queues/api/queues/interactive/active_tasks/" + id + ":cancel",
		"POST /queues/api/queues/interactive/active_tasks:cancel_all",
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := h.do(method, path, ""); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %s", method, path, a.Status)
		}
	}
}

// Payloads that are not task IDs are not shown.
func TestForeignPayloadsAreNotShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(1) // so that the queue is there
	_, err := asynq.NewClientFromRedisClient(h.redis).Enqueue(asynq.NewTask("x", []byte("s3cret")),
		asynq.Queue("interactive"))
	if err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/queues/api/queues/interactive/pending_tasks"), http.StatusOK, "(not a task ID)", "!s3cret")
}

func TestLinksBetweenDeliveriesAndTasks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	h.contains(h.get("/tasks/"+id), http.StatusOK, `href="/queues/queues/interactive/tasks/`+id+`"`)
	h.contains(h.get("/queues/api/queues/interactive/tasks/"+id), http.StatusOK, id)
	h.redirects(h.get("/queues/tasks/"+id), "/tasks/"+id)
	h.End(h.Claim(id), tasks.Ending{Kind: tasks.Failed})
	if _, err := h.Desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/tasks/"+id), http.StatusOK, `href="/queues/queues/interactive/tasks/`+id+`.r1"`)
	h.redirects(h.get("/queues/tasks/"+id+".r1"), "/tasks/"+id)
	// A task ID that ends like a redelivery's is not mistaken for one.
	odd := h.submit(2, func(t *tasks.Task) { t.ID += ".r1" })
	h.redirects(h.get("/queues/tasks/"+odd), "/tasks/"+odd)
	h.problem(h.get("/queues/tasks/"+unknown+".r1"), http.StatusNotFound)
}

// If queues are writable, asynqmon's Cancel goes to the desk: it is stored with who asked, and finds the task of any
// delivery.
func TestCancelOfADelivery(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(c *Config) { c.QueuesWritable = true })
	var ids []string
	for n := range 3 {
		ids = append(ids, h.submit(n, func(t *tasks.Task) { t.Thread += t.ID }))
		h.Claim(ids[n])
	}
	const active = "/queues/api/queues/interactive/active_tasks"
	cancelled := func(n int) bool {
		t.Helper()
		s, err := h.Desk.Status(t.Context(), ids[n])
		if err != nil || s.Cancel != "" && s.Cancel != "console" {
			t.Errorf("cancelled by %q, %v", s.Cancel, err)
		}
		return s.Cancel != ""
	}
	if a := h.do("POST", active+"/"+ids[0]+".r2:cancel", ""); a.StatusCode != http.StatusNoContent ||
		!cancelled(0) || cancelled(1) {
		t.Errorf("one: %s", a.Status)
	}
	for _, several := range []string{":batch_cancel", ":cancel_all"} {
		h.problem(h.do("POST", active+several, `{"task_ids":["`+ids[1]+`"]}`), http.StatusForbidden)
	}
	if cancelled(1) || cancelled(2) {
		t.Error("several were cancelled at once")
	}
	h.problem(h.do("POST", active+"/"+unknown+":cancel", ""), http.StatusNotFound)
	h.problem(h.do("POST", active+"/"+ids[1]+":cancel", "", "Origin", "https://elsewhere.test"), http.StatusForbidden)
	if a := h.do("POST", "/queues/api/queues/interactive:pause", ""); a.StatusCode != http.StatusNoContent {
		t.Errorf("pause: %s", a.Status)
	}
}
