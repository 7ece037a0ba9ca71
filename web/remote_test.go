package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web/logs"
)

const fleetToken = "token-of-the-fleet"

func hostname(h *harness) string {
	h.Helper()
	host, err := os.Hostname()
	if err != nil {
		h.Fatal(err)
	}
	return host
}

func asksWorkers(c *Config) { c.FleetToken = fleetToken }

// machine is a worker's log directory and its server.
type machine struct {
	dir   string
	url   string
	asked atomic.Int32
}

// machine registers a worker on this host; beat may change its record.
func (h *harness) machine(id string, beat func(*store.Worker)) *machine {
	h.Helper()
	m := &machine{dir: h.TempDir()}
	logs := logs.Server(m.dir, fleetToken)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		logs.ServeHTTP(w, r)
	}))
	h.Cleanup(s.Close)
	m.url = s.URL
	w := store.Worker{ID: id, Host: hostname(h), URL: s.URL}
	if beat != nil {
		beat(&w)
	}
	if _, err := h.Store.Workers.Beat(h.Context(), w); err != nil {
		h.Fatal(err)
	}
	return m
}

func (m *machine) log(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(m.dir+"/"+name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keep saves a run's log in the store, like a worker.
func (h *harness) keep(c *store.Claim, name, text string) {
	h.Helper()
	if err := c.SaveLog(h.Context(), name, []byte(text)); err != nil {
		h.Fatal(err)
	}
}

func (h *harness) wantLog(id, query, want string, hs ...string) {
	h.Helper()
	a := h.get("/api/tasks/"+id+"/log"+query, hs...)
	if a.StatusCode >= 300 || a.text != want {
		h.Errorf("%q: %s %q, want %q", query, a.Status, a.text, want)
	}
	kind := "text/plain; charset=utf-8"
	if strings.Contains(query, "raw") {
		kind = "application/x-ndjson"
	}
	if got := a.Header.Get("Content-Type"); got != kind || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		h.Errorf("%q is sent as %q", query, got)
	}
}

func TestLogOfAnotherWorker(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	c := h.Claim(id)                    // by worker-1
	other := h.machine("worker-2", nil) // whose log it is not
	has := h.machine("worker-1", nil)
	other.log(t, id+".log", "not this\n")
	has.log(t, id+".log", "said\n")
	has.log(t, id+".ndjson", "{}\n")
	h.wantLog(id, "", "said\n")
	h.wantLog(id, "?raw=1", "{}\n")
	h.wantLog(id, "", "id\n", "Range", "bytes=-3")
	last := h.get("/api/tasks/" + id + "/log").Header.Get("Last-Modified")
	h.wantLog(id, "", "said\n", "If-Modified-Since", last) // which is no reason to look elsewhere
	h.wantLog(id, "", "id\n", "Range", "bytes=-3", "If-Range", last)
	if n := other.asked.Load(); n != 0 {
		t.Errorf("a worker without the log was asked %d times", n)
	}
	h.keep(c, "log", "kept\n")
	h.wantLog(id, "", "said\n") // all of it, where it is

	// Without the fleet token no worker is asked, and the saved log is used.
	cfg := h.config
	cfg.Mux, cfg.FleetToken = nil, ""
	tokenless, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer tokenless.Close()
	h.server.Config.Handler = tokenless
	h.wantLog(id, "", "kept\n")
}

func TestLogOfAWorkerThatIsGone(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	c, err := h.Store.Claim(t.Context(), id, 0, hostname(h)+"-1-abcdef01")
	if err != nil {
		t.Fatal(err)
	}
	far := h.machine("far-1-abcdef02", func(w *store.Worker) { w.Host = "far" }) // its loopback address is useless here
	far.log(t, id+".log", "not this\n")
	if detail := h.problem(h.get("/api/tasks/"+id+"/log"), http.StatusNotFound); !strings.Contains(detail,
		"-1-abcdef01, as "+id+".log") {
		t.Errorf("the detail does not say where the log is: %s", detail)
	}
	h.keep(c, "log", "kept\n")
	h.wantLog(id, "", "kept\n")
	h.problem(h.get("/api/tasks/"+id+"/log?raw=1"), http.StatusNotFound)

	empty := h.machine(hostname(h)+"-2-abcdef03", nil) // the same machine, another directory
	h.wantLog(id, "", "kept\n")
	later := h.machine(hostname(h)+"-2-abcdef04", nil) // and one with the same directory
	later.log(t, id+".log", "whole\n")
	h.wantLog(id, "", "whole\n")
	if far.asked.Load() != 0 || empty.asked.Load() == 0 {
		t.Errorf("asked: %d, %d", far.asked.Load(), empty.asked.Load())
	}
}

// The local log of a task that continued on another worker is out of date.
func TestLogOfATaskThatWentOnElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	h.log(id+".log", "first part\n")
	c := h.Claim(id)
	h.wantLog(id, "", "first part\n") // nothing else is there yet
	h.keep(c, "log", "both parts\n")
	h.wantLog(id, "", "both parts\n")
	h.machine("worker-1", nil).log(t, id+".log", "second part\n")
	h.wantLog(id, "", "second part\n")
	h.log(id+".log", "written to since\n")
	since := time.Now().Add(time.Second)
	if err := os.Chtimes(h.logs+"/"+id+".log", since, since); err != nil { // a file's clock is coarse
		t.Fatal(err)
	}
	h.wantLog(id, "", "written to since\n")
}

func TestPartsOfALogAreJoined(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for _, part := range []string{"one\n", packed("two\n"), "three\n"} {
		c := h.Claim(id)
		h.keep(c, "log", part)
		if err := c.Return(t.Context(), store.Wait{}); err != nil {
			t.Fatal(err)
		}
	}
	h.wantLog(id, "", "one\ntwo\nthree\n")
}

// packed returns a part of a log as earlier versions saved it.
func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // memory takes it
	_ = z.Close()
	return b.String()
}

func TestLogsNeedTheFleetsToken(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	m := h.machine("worker-1", nil)
	m.log(t, id+".log", "said\n")
	outside := t.TempDir() + "/outside"
	if err := os.WriteFile(outside, []byte("said\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := "1700000000000009-test-x"
	if err := os.Symlink(outside, m.dir+"/"+link+".log"); err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewServer(logs.Server(m.dir, ""))
	t.Cleanup(closed.Close)
	ask := func(base, path, auth string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", auth)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		if (resp.StatusCode == http.StatusOK) != (string(body) == "said\n") {
			t.Errorf("%s with %q: %s %q", path, auth, resp.Status, body)
		}
		return resp.StatusCode
	}
	path := "/logs/" + id
	for _, auth := range []string{
		"", "Bearer ", "Bearer wrong", "Bearer " + fleetToken + "x", "Basic " + fleetToken, "Bearer " + token,
	} {
		if got := ask(m.url, path, auth); got != http.StatusUnauthorized {
			t.Errorf("with %q: %d", auth, got)
		}
	}
	for _, auth := range []string{"", "Bearer ", "Bearer " + fleetToken} {
		if got := ask(closed.URL, path, auth); got != http.StatusUnauthorized {
			t.Errorf("a server without a token, with %q: %d", auth, got)
		}
	}
	for path, want := range map[string]int{
		path: http.StatusOK, path + "?raw=1": http.StatusNotFound, "/logs/" + link: http.StatusNotFound,
		"/logs/..%2fsecret": http.StatusBadRequest, "/logs/": http.StatusNotFound, "/": http.StatusNotFound,
	} {
		if got := ask(m.url, path, "Bearer "+fleetToken); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// A truncated log does not look complete, and other responses of a worker are ignored.
func TestWorkersThatMisbehave(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	c := h.Claim(id)
	next := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch <-next {
		case "fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "send elsewhere":
			w.Header().Set("Location", "http://elsewhere.test/")
			w.WriteHeader(http.StatusFound)
		case "break off":
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.SetKeepAlivesEnabled(false) // or a client would try again, on a new connection
	t.Cleanup(s.Close)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{
		ID: "worker-1", Host: hostname(h), URL: s.URL,
	}); err != nil {
		t.Fatal(err)
	}
	h.keep(c, "log", "kept\n")
	for _, what := range []string{"fail", "send elsewhere", "hang up"} {
		next <- what
		h.wantLog(id, "", "kept\n")
	}
	next <- "break off"
	h.contains(h.get("/tasks/"+id+"/log", "Accept", "text/html"), http.StatusBadGateway, "<h1>Interrupted</h1>", "!xxx")
	next <- "break off"
	resp, err := h.server.Client().Do(h.request(http.MethodGet, "/api/tasks/"+id+"/log", "", nil))
	if err != nil {
		return // the connection broke before the header
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("a truncated log looks complete")
	}
}
