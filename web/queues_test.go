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
