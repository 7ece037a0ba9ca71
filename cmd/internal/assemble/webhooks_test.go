package assemble

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// A whole front door tells of a task as its API does. The secret is in no log.
func TestWebhookOfTheFrontDoor(t *testing.T) {
	const secret = "a-secret-of-the-webhook"
	t.Setenv("OPS_SECRET", secret)
	got := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("X-Errand-Signature-256")[:7] + string(body)
	}))
	t.Cleanup(receiver.Close)
	c := config.Config{
		Redis: config.Redis{URL: config.RedisURL(redistest.Start(t))}, HTTP: config.HTTP{ConsoleToken: consoleToken},
		Paths: config.Paths{State: t.TempDir()},
		Routing: config.Routing{Webhooks: map[string]config.Webhook{"ops": {
			URL: receiver.URL, Secret: `{{env "OPS_SECRET"}}`,
		}}},
	}
	var log bytes.Buffer
	p, err := New(c, Logger(&log, c), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	door, err := p.FrontDoor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := taskstest.Worker{T: t, Store: p.Store, Desk: p.Desk}
	task := tasks.Task{
		ID: tasks.NewID(time.Now(), "chat", "a"), Source: "chat", Kind: "chat", Thread: "chat/a",
		Class: tasks.Interactive, Profile: agent.Read, Actor: "ann", Prompt: "Why?",
	}
	if _, err := p.Desk.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	w.End(w.Claim(task.ID), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "Because."}})
	if err := p.webhooks.Note(t.Context(), task, w.Status(task.ID).Ended); err != nil {
		t.Fatal(err)
	}
	body := <-got
	for _, want := range []string{
		`sha256={"event":"task.ended","webhook":"ops","task":{`, `"id":"` + task.ID + `"`, `"prompt":"Why?"`,
		`"kind":"answered"`, "Because.",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %s", body, want)
		}
	}
	p.Log.Info("test", "secret", secret)
	if err := door.Close(); err != nil || strings.Contains(log.String(), secret) {
		t.Errorf("%v, %s", err, log.String())
	}
}
