package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

const secret = "a-secret-of-the-webhook"

// request is what a receiver got.
type request struct {
	key, body, agent string
	signed           bool
}

// receiver is a real HTTP server that answers with its status.
type receiver struct {
	*httptest.Server

	status atomic.Int32
	got    chan request
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: make(chan request, 100)}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		key := q.Header.Get("Idempotency-Key")
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(q.Header.Get("X-Errand-Timestamp") + "." + key + "." + string(body)))
		signed := q.Header.Get("X-Errand-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil))
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(r.status.Load()))
		r.got <- request{key, string(body), q.UserAgent(), signed && q.Method == http.MethodPost &&
			q.Header.Get("Content-Type") == "application/json"}
	}))
	t.Cleanup(r.Close)
	return r
}

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// door makes webhooks whose deliveries are made at once, or not accepted.
func door(hooks ...Webhook) (w *Webhooks, inbox *taskstest.Inbox) {
	inbox = &taskstest.Inbox{}
	return New(Config{Webhooks: hooks, Inbox: inbox, Task: func(_ context.Context, id string) (any, time.Time, error) {
		if id == "forgotten" {
			return nil, time.Time{}, tasks.ErrNotFound
		}
		return map[string]string{"id": id}, noon, nil
	}}), inbox
}

// A webhook gets the endings that it wants, signed, and each with one key.
func TestEndings(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, _ := door(Webhook{Name: "ops", URL: r.URL, Secret: secret, Repositories: []string{"acme/*"}})
	for _, n := range []struct {
		id, repo string
		at       time.Time
	}{
		{"1-a", "Acme/API", noon},
		{"1-other", "other/api", noon},
		{"1-none", "", noon},
		{"1-earlier", "acme/api", noon.Add(-time.Hour)}, // it was retried, and this is not its last ending
		{"1-b", "acme/api", noon},
	} {
		if err := w.Note(t.Context(), tasks.Task{ID: n.id, Repo: n.repo}, n.at); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"1-a", "1-b"} {
		want := request{"ops." + id + ".1795780800000000", `{"event":"task.ended","webhook":"ops","task":{"id":"` +
			id + `"}}`, "errand", true}
		if got := <-r.got; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if len(r.got) > 0 {
		t.Errorf("%d further requests", len(r.got))
	}
}

// A receiver for some repositories gets tasks whose repositories are all among them.
func TestWantsAllRepositories(t *testing.T) {
	t.Parallel()
	w := Webhook{Repositories: []string{"acme/*", "docs/site"}}
	for also, want := range map[string]bool{"acme/web": true, "docs/site": true, "other/x": false} {
		if got := w.wants(tasks.Task{Repo: "acme/api", Also: []string{also}}); got != want {
			t.Errorf("with %s: %v", also, got)
		}
	}
}

// What a receiver refuses is tried again; a redirect is a refusal. What is known of a failure has nothing of the URL.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.status.Store(http.StatusTemporaryRedirect)
	for want, hook := range map[string]Webhook{
		"the receiver answered 307 Temporary Redirect": {Name: "ops", URL: r.URL + "/?token=t0k3n", Secret: secret},
		"reach the receiver: dial tcp":                 {Name: "gone", URL: "http://127.0.0.1:1/?token=t0k3n", Secret: secret},
	} {
		w, _ := door(hook)
		err := w.Note(t.Context(), tasks.Task{ID: "1-a"}, noon)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "t0k3n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A delivery that cannot succeed is given up at once, and kept for an operator.
func TestDeadDeliveries(t *testing.T) {
	t.Parallel()
	w, inbox := door(Webhook{Name: "ops", URL: "http://127.0.0.1:1", Secret: secret})
	if err := w.Note(t.Context(), tasks.Task{ID: "forgotten"}, noon); err != nil {
		t.Fatal(err)
	}
	if said := inbox.Outcome("ops.forgotten.1795780800000000"); !strings.Contains(said, "the task is no longer kept") {
		t.Error(said)
	}
	if err := inbox.Accept(t.Context(), intake.Event{Source: sourceName, ID: "x", Body: []byte("{")}); err != nil ||
		!strings.Contains(inbox.Outcome("x"), "read delivery") {
		t.Errorf("%s: %v", inbox.Outcome("x"), err)
	}
}

// A delivery for a webhook that this front door does not know waits for one that does: while a fleet is changed, not
// all of its processes have the same errand.yaml.
func TestDeliveryForAnotherFrontDoor(t *testing.T) {
	t.Parallel()
	_, inbox := door(Webhook{Name: "ops", URL: "http://127.0.0.1:1", Secret: secret})
	err := inbox.Accept(t.Context(), intake.Event{Source: sourceName, Body: []byte(`{"webhook":"new","task":"1-a"}`)})
	if err == nil || !strings.Contains(err.Error(), "has no webhook new") {
		t.Error(err)
	}
}
