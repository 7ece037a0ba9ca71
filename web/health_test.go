package web

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/web/internal/view"
)

func TestReady(t *testing.T) {
	t.Parallel()
	var broken error
	h := newHarness(t, func(c *Config) { c.Ready = func(context.Context) error { return broken } })
	h.contains(h.get("/readyz"), http.StatusOK, "ok")
	broken = errors.New("Slack rejects the token")
	h.contains(h.get("/readyz"), http.StatusServiceUnavailable, "Slack rejects the token")
	_ = h.redis.Close()
	h.contains(h.get("/readyz"), http.StatusServiceUnavailable, "Redis does not answer", "!closed")
	h.contains(h.get("/livez"), http.StatusOK, "ok")
}

// The health reports a Redis that may drop tasks, and counts the tasks.
func TestHealthTellsOfRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	var f view.Fleet
	h.into(h.get("/api/health"), http.StatusOK, &f)
	if len(f.Findings) != 1 || f.Findings[0].What != "Redis runs without appendonly" || f.Tasks != (view.Tally{}) {
		t.Errorf("got %+v", f)
	}
	h.submit(1)
	for n, at := range []time.Time{{}, time.Now().Add(time.Hour)} {
		id := h.submit(n+2, func(t *tasks.Task) { t.Thread += "/" + t.ID })
		c := h.Claim(id)
		if n > 0 {
			if err := c.Return(t.Context(), store.Wait{At: at}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range [][2]string{{"maxmemory", "1gb"}, {"maxmemory-policy", "allkeys-lru"}} {
		if err := h.redis.ConfigSet(t.Context(), args[0], args[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	h.into(h.get("/api/health"), http.StatusServiceUnavailable, &f)
	if f.OK || f.Problem != "Redis runs with maxmemory-policy allkeys-lru" ||
		f.Tasks != (view.Tally{Running: 1, Waiting: 2, Held: 1}) {
		t.Errorf("got %+v", f)
	}
}

// inbound returns a source with its last event, and what keeps events from arriving.
func inbound(source string, last time.Time, err error) Inbound {
	return Inbound{Source: source, Last: func() (time.Time, error) { return last, err }}
}

// A source without events is reported, and does not make the fleet unhealthy.
func TestHealthTellsOfSources(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := newHarness(t, func(c *Config) {
		c.Inbound = []Inbound{
			inbound("slack", time.Time{}, nil), inbound("slack", last, errors.New("invalid_auth")),
		}
	})
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "w"}); err != nil {
		t.Fatal(err)
	}
	var f view.Fleet
	h.into(h.get("/api/health"), http.StatusOK, &f)
	if want := []view.Source{{Name: "slack"}, {
		Name: "slack", Last: last, Problem: "invalid_auth",
	}}; !slices.Equal(f.Sources, want) {
		t.Errorf("got %+v, want %+v", f.Sources, want)
	}
}

// Redis accepts connections and does not answer, and its client waits longer than a probe may.
func TestHungRedisIsNoHungProbe(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := newHarnessAt(t, &redis.Options{Addr: l.Addr().String(), ReadTimeout: time.Minute, DialTimeout: time.Minute})
	h.contains(h.get("/readyz"), http.StatusServiceUnavailable, "Redis does not answer")
	var f view.Fleet
	h.into(h.get("/api/health"), http.StatusServiceUnavailable, &f)
	if f.OK || f.Problem != "Redis does not answer" || f.Redis == "ok" {
		t.Errorf("got %+v", f)
	}
}

func TestFleet(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	check := func(status int, problem string, workers ...string) {
		t.Helper()
		var f view.Fleet
		h.into(h.get("/api/health"), status, &f)
		var got []string
		for _, w := range f.Workers {
			got = append(got, w.ID)
		}
		if f.OK != (status == 200) || !strings.Contains(f.Problem, problem) ||
			strings.Join(got, " ") != strings.Join(workers, " ") || f.Redis != "ok" {
			t.Errorf("got %+v", f)
		}
	}
	beat := func(w store.Worker) {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	check(http.StatusServiceUnavailable, "no worker is alive")
	beat(store.Worker{ID: "a", Draining: true, Health: json.RawMessage(`{"ok":true}`)})
	beat(store.Worker{ID: "b", Health: json.RawMessage(`{"ok":false,"problem":"claude has no credential"}`)})
	check(http.StatusServiceUnavailable, "no worker can run tasks", "a", "b")
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, "claude has no credential")
	beat(store.Worker{ID: "c", Host: "host-c", Slots: 4, Running: 1, Health: json.RawMessage(`{"ok":true}`)})
	check(http.StatusOK, "", "a", "b", "c")
	h.contains(h.get("/api/health"), http.StatusOK, `"host": "host-c"`, `"slots": 4`, `"running": 1`)
}

// A held or refused credential is an error everywhere, as long as a worker uses it.
func TestCredentialNeedsSomebody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	beat := func(credential string) {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "a", Credential: credential}); err != nil {
			t.Fatal(err)
		}
	}
	beat("0a1b")
	h.contains(h.get("/api/health"), http.StatusOK, "!credentials")
	h.contains(h.get("/"), http.StatusOK, "!banner")
	h.contains(h.get("/chat"), http.StatusOK, "!banner")
	until := time.Now().Add(time.Hour)
	if err := h.Store.Credentials.Hold(t.Context(), "0a1b", until, time.Second,
		"the usage limit is reached"); err != nil {
		t.Fatal(err)
	}
	when := "no run starts before " + view.Time(until)
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, `"ok": false`, `"name": "0a1b"`,
		"the usage limit is reached", until.UTC().Format("2006-01-02T15:04:05"), `"severity": "error"`)
	for _, page := range []string{"/", "/chat"} {
		h.contains(h.get(page), http.StatusOK,
			`class="banner error" role="alert">New tasks will not run, or will fail. No run starts before `+
				view.Time(until)+": the usage limit is reached.")
	}
	h.contains(h.get("/fleet"), http.StatusOK, `class="banner error"`, when, "!All checks pass")
	if err := h.Store.Credentials.Refuse(t.Context(), "0a1b", "authentication failed"); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, "credential 0a1b: the model refuses it",
		"authentication failed")
	for _, page := range []string{"/", "/chat"} {
		h.contains(h.get(page), http.StatusOK, `class="banner error"`,
			"The model refuses the credential of the workers: authentication failed.")
	}
	h.contains(h.get("/readyz"), http.StatusOK, "ok") // the process serves
	beat("another")
	h.contains(h.get("/api/health"), http.StatusOK, "!credentials")
}

// One bad credential of two is a failed check. Tasks do not run only if no worker has a good one.
func TestOneOfTwoCredentials(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, name := range []string{"a", "b"} {
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: name, Credential: "key-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour)
	if err := h.Store.Credentials.Hold(t.Context(), "key-a", later, time.Second,
		"the usage limit is reached"); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/api/health"), http.StatusOK, `"ok": true`, "credential key-a: no run starts before",
		`"severity": "error"`)
	h.contains(h.get("/"), http.StatusOK, "!banner")
	h.contains(h.get("/fleet"), http.StatusOK, "credential key-a: no run starts before", "!Tasks do not run",
		"!All checks pass")
	sooner := time.Now().Add(time.Minute)
	if err := h.Store.Credentials.Hold(t.Context(), "key-b", sooner, time.Second, "too many requests"); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, `"ok": false`,
		"no run starts before "+view.Time(sooner)+": too many requests")
	h.contains(h.get("/"), http.StatusOK, `class="banner error"`)
	if _, err := h.Store.Workers.Beat(t.Context(),
		store.Worker{ID: "b", Credential: "key-b", Draining: true}); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, `"problem": "no run starts before `+
		view.Time(later)+": the usage limit is reached")
}

// Where the workers have several credentials, the health says that none of them can be used.
func TestAllCredentialsHeld(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	share := func(name string, until time.Time) {
		states := map[string]agent.CredentialState{
			name: {HeldAt: now, Until: until, Status: http.StatusTooManyRequests, Seen: now, Reported: now},
		}
		if _, err := capacity.ShareCredentials(t.Context(), h.Store, states); err != nil {
			t.Fatal(err)
		}
	}
	later, sooner := now.Add(2*time.Hour), now.Add(time.Hour)
	share("one", later)
	share("two", time.Time{})
	h.contains(h.get("/api/health"), http.StatusOK, `"ok": true`)
	now = now.Add(time.Second)
	share("two", sooner)
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, `"ok": false`,
		`"problem": "no run reaches the model before `+view.Time(sooner))
	h.contains(h.get("/fleet"), http.StatusOK, "Tasks do not run")
}
