package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/hibiken/asynq"
)

func TestQueuesAreShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	a := h.get("/queues/")
	h.contains(a, http.StatusOK, "Asynq", `window.FLAG_ROOT_PATH="\/queues"`)
	if got := a.Header.Get("Content-Security-Policy"); !strings.Contains(got, "script-src 'self' 'unsafe-inline'") {
		t.Errorf("its inline script is kept from running: %q", got)
	}
	script := h.get("/queues/static/js/main.5adda2da.chunk.js")
	if got := script.Header.Get("Content-Type"); script.StatusCode != http.StatusOK || !strings.HasPrefix(got, "application/javascript") {
		t.Errorf("its script is %s %s", script.Status, got)
	}
	h.contains(h.get("/queues/api/queues"), http.StatusOK, `"queue":"interactive"`)
	h.contains(h.get("/queues/api/queues/interactive/pending_tasks"), http.StatusOK, `"payload":"`+id+`"`)
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
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := h.do(method, path, ""); a.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s %s: %s", method, path, a.Status)
		}
	}
}

// Whatever else is put into this Redis is not shown.
func TestForeignPayloadsAreNotShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(1) // so that the queue is there
	_, err := asynq.NewClientFromRedisClient(h.redis).Enqueue(asynq.NewTask("x", []byte("s3cret")), asynq.Queue("interactive"))
	if err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/queues/api/queues/interactive/pending_tasks"), http.StatusOK, "(not a task ID)", "!s3cret")
}
