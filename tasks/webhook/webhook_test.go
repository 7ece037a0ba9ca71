package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/goroutines"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
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

// fleet makes webhooks on one real Redis.
func fleet(t *testing.T) func(hooks ...Webhook) *Webhooks {
	t.Helper()
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	return func(hooks ...Webhook) *Webhooks {
		return New(Config{Webhooks: hooks, Redis: rdb, Task: func(_ context.Context, id string) (any,
			time.Time, error,
		) {
			if id == "forgotten" {
				return nil, time.Time{}, tasks.ErrNotFound
			}
			return map[string]string{"id": id}, noon, nil
		}})
	}
}

// deliver delivers until the test calls stop, and at most until it ends.
func deliver(t *testing.T, w *Webhooks) (stop func()) {
	t.Helper()
	stop, err := w.Deliver()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

func noteOne(t *testing.T, w *Webhooks, id, repo string, kind tasks.EndingKind, at time.Time) {
	t.Helper()
	if err := w.Note(t.Context(), tasks.Task{ID: id, Repo: repo}, kind, at); err != nil {
		t.Fatal(err)
	}
}

// A webhook gets the endings that it wants, each once, signed.
func TestEndings(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := fleet(t)(Webhook{
		Name: "ops", URL: r.URL, Secret: secret, Endings: []tasks.EndingKind{tasks.Failed, tasks.Lost},
		Repositories: []string{"acme/*"},
	})
	deliver(t, w)
	for range 2 { // two workers posted its final message
		noteOne(t, w, "1-a", "Acme/API", tasks.Failed, noon)
	}
	noteOne(t, w, "1-answered", "acme/api", tasks.Answered, noon)
	noteOne(t, w, "1-other", "other/api", tasks.Failed, noon)
	noteOne(t, w, "1-none", "", tasks.Failed, noon)
	// it was retried, and this is not its last ending
	noteOne(t, w, "1-earlier", "acme/api", tasks.Failed, noon.Add(-time.Hour))
	noteOne(t, w, "1-b", "acme/api", tasks.Lost, noon)
	got := []request{<-r.got, <-r.got}
	slices.SortFunc(got, func(a, b request) int { return strings.Compare(a.key, b.key) })
	for i, id := range []string{"1-a", "1-b"} {
		want := request{"ops." + id + ".1795780800000000", `{"event":"task.ended","webhook":"ops","task":{"id":"` +
			id + `"}}`, "errand", true}
		if got[i] != want {
			t.Errorf("%+v, want %+v", got[i], want)
		}
	}
	if all, err := w.Undelivered(t.Context()); err != nil || len(all) > 0 || len(r.got) > 0 {
		t.Errorf("%+v, %v, %d further requests", all, err, len(r.got))
	}
}

// A front door stops the deliveries when its server begins to shut down, and before it closes Redis.
func TestEachStopWaits(t *testing.T) {
	t.Parallel()
	got, answers := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(got)
		<-answers
	}))
	t.Cleanup(s.Close)
	w := fleet(t)(Webhook{Name: "ops", URL: s.URL, Secret: secret})
	stop := deliver(t, w)
	noteOne(t, w, "1-a", "acme/api", tasks.Answered, noon)
	<-got
	stopped := make(chan struct{}, 2)
	for range 2 {
		go func() { stop(); stopped <- struct{}{} }()
	}
	if !goroutines.Await(func() bool { return len(stopped) > 0 }, 2, "webhook.TestEachStopWaits", "sync.(*Once)") {
		t.Error("it does not wait for a request")
	}
	close(answers)
	for range 2 {
		<-stopped
	}
}

// A receiver for some repositories gets tasks whose repositories are all among them.
func TestWantsAllRepositories(t *testing.T) {
	t.Parallel()
	w := Webhook{Repositories: []string{"acme/*", "docs/site"}}
	for also, want := range map[string]bool{"acme/web": true, "docs/site": true, "other/x": false} {
		if got := w.wants(tasks.Task{Repo: "acme/api", Also: []string{also}}, tasks.Answered); got != want {
			t.Errorf("with %s: %v", also, got)
		}
	}
}

// failed waits until deliveries have failed.
func failed(t *testing.T, w *Webhooks, n int) []tasks.Undelivered {
	t.Helper()
	for {
		all, err := w.Undelivered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == n {
			return all
		}
		if t.Context().Err() != nil {
			t.Fatalf("%+v", all)
		}
	}
}

// What a receiver refuses is tried again later, and at once if an operator wants it. A redirect is a refusal. What is
// known of a failure has nothing of the URL.
func TestReceiverFails(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w := fleet(t)(Webhook{Name: "ops", URL: r.URL + "/?token=t0k3n", Secret: secret},
		Webhook{Name: "gone", URL: "http://127.0.0.1:1/?token=t0k3n", Secret: secret})
	deliver(t, w)
	r.status.Store(http.StatusTemporaryRedirect)
	noteOne(t, w, "1-a", "", tasks.Answered, noon)
	for _, u := range failed(t, w, 2) {
		want := map[string]string{
			"ops": "the receiver answered 307 Temporary Redirect", "gone": "reach the receiver: dial tcp",
		}[u.Webhook]
		if u.Task != "1-a" || u.Attempts != 1 || u.Next.IsZero() || u.Failed.IsZero() ||
			!strings.Contains(u.Problem, want) || strings.Contains(u.Problem, "t0k3n") {
			t.Errorf("%+v", u)
		}
	}
	if first := <-r.got; !first.signed || len(r.got) > 0 {
		t.Errorf("%+v, and %d more", first, len(r.got))
	}
	r.status.Store(http.StatusOK)
	const id = "ops.1-a.1795780800000000"
	if err := w.Replay(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if again := <-r.got; again.key != id || !again.signed {
		t.Errorf("%+v", again)
	}
	if left := failed(t, w, 1); left[0].Webhook != "gone" {
		t.Errorf("%+v", left)
	}
	if err := w.Replay(t.Context(), "none"); !errors.Is(err, tasks.ErrNotFound) {
		t.Error(err)
	}
}

// A delivery that cannot succeed is dead at once. An operator can send it again when errand.yaml is mended.
func TestDeadDeliveries(t *testing.T) {
	t.Parallel()
	r, with := newReceiver(t), fleet(t)
	hook := Webhook{Name: "ops", URL: r.URL, Secret: secret}
	if all, err := with(hook).Undelivered(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("before the first: %+v, %v", all, err)
	}
	noteOne(t, with(hook), "1-a", "", tasks.Answered, noon)
	noteOne(t, with(hook), "forgotten", "", tasks.Answered, noon)
	w := with(Webhook{Name: "other", URL: r.URL, Secret: secret})
	stop := deliver(t, w)
	for _, u := range failed(t, w, 2) {
		if !u.Next.IsZero() || u.Attempts != 1 ||
			!strings.Contains(u.Problem, "errand.yaml has no webhook ops any more") {
			t.Errorf("%+v", u)
		}
	}
	stop()
	if err := with(hook).Replay(t.Context(), "ops.1-a.1795780800000000"); err != nil {
		t.Error(err)
	}
	if err := with(hook).Replay(t.Context(), "ops.1-a.1795780800000000"); err != nil {
		t.Errorf("twice: %v", err) // it waits to be sent
	}
	stop = deliver(t, w) // without the webhook again
	failed(t, w, 2)
	stop()
	w = with(hook)
	if said := w.Diagnose(t.Context()); len(said) != 1 ||
		!strings.Contains(said[0].Why, "requests that were given up: 2, such as one to ops: errand.yaml has no") ||
		said[0].Remedy == "" {
		t.Errorf("%+v", said)
	}
	deliver(t, w)
	for _, u := range failed(t, w, 2) {
		if err := w.Replay(t.Context(), u.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-r.got; got.key != "ops.1-a.1795780800000000" {
		t.Errorf("%+v", got)
	}
	for { // until the delivery is done
		if err := w.Replay(t.Context(), "ops.1-a.1795780800000000"); errors.Is(err, tasks.ErrNotFound) {
			break
		} else if err != nil || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if left := failed(t, w, 1); left[0].Task != "forgotten" ||
		!strings.Contains(left[0].Problem, "the task is no longer kept") {
		t.Errorf("%+v", left)
	}
	if said := with().Diagnose(t.Context()); said != nil {
		t.Errorf("without webhooks: %+v", said)
	}
}

// A delivery that has failed at every attempt is dead. It stays there when it is replayed to a receiver that still
// fails, and is gone once it arrives.
func TestReceiverFailsForTheWholeTime(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.status.Store(http.StatusInternalServerError)
	w := fleet(t)(Webhook{Name: "ops", URL: r.URL, Secret: secret})
	n := note{Webhook: "ops", Task: "1-a", Ended: noon}
	payload, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	const retries = 2 // otherwise as Note does it
	if _, err := w.client.EnqueueContext(t.Context(), asynq.NewTask(taskType, payload), asynq.Queue(queue),
		asynq.TaskID(n.id()), asynq.MaxRetry(retries)); err != nil {
		t.Fatal(err)
	}
	deliver(t, w)
	attempt := func(total int, dead bool) {
		t.Helper()
		if got := <-r.got; got.key != n.id() || !got.signed {
			t.Errorf("%+v", got)
		}
		for {
			u := failed(t, w, 1)[0]
			if u.Attempts == total && u.Next.IsZero() == dead {
				if u.Problem != "the receiver answered 500 Internal Server Error" {
					t.Errorf("%+v", u)
				}
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("%+v", u)
			}
		}
	}
	replay := func() {
		t.Helper()
		if err := w.Replay(t.Context(), n.id()); err != nil {
			t.Fatal(err)
		}
	}
	for total := range retries {
		attempt(total+1, false)
		replay() // so that nobody waits for the pause
	}
	attempt(retries+1, true)
	noteOne(t, w, "1-a", "", tasks.Answered, noon) // by another worker: it is known
	if said := w.Diagnose(t.Context()); len(said) != 1 ||
		!strings.Contains(said[0].Why, "requests that were given up: 1, such as one to ops") {
		t.Errorf("%+v", said)
	}
	replay()
	attempt(retries+1, true)
	r.status.Store(http.StatusOK)
	replay()
	if got := <-r.got; got.key != n.id() || !got.signed {
		t.Errorf("%+v", got)
	}
	failed(t, w, 0)
}

// A receiver that does not answer is reported after some attempts, and dead deliveries at once.
func TestDiagnose(t *testing.T) {
	t.Parallel()
	next := time.Now()
	brief, long, dead := tasks.Undelivered{Webhook: "ops", Attempts: troubled - 1, Next: next},
		tasks.Undelivered{Webhook: "ops", Attempts: troubled, Next: next, Problem: "refused"},
		tasks.Undelivered{Webhook: "ci", Attempts: 1, Problem: "no"}
	for want, all := range map[string][]tasks.Undelivered{
		"":                                       {brief},
		"requests fail, such as to ops: refused": {brief, long},
		"requests that were given up: 1, such as one to ci: no": {dead, long},
	} {
		if said := diagnose(all); len(said) != 1 || said[0].Why != want || (want != "") != (said[0].Remedy != "") {
			t.Errorf("%+v, want %q", said, want)
		}
	}
}

// The pauses add up to about a day.
func TestPauses(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	for n := range maxRetries {
		sum += pause(n, nil, nil)
	}
	if pause(0, nil, nil) != 2*time.Second || sum < 20*time.Hour || sum > 28*time.Hour {
		t.Errorf("%v in all", sum)
	}
}
