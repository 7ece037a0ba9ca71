package chat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// harness is a front door with the chat behind it, on a real Redis. The test plays the worker.
type harness struct {
	taskstest.Worker
	source   *Source
	redis    *redis.Client
	server   *httptest.Server
	stop     context.CancelFunc // ends the context of Listen
	returned chan struct{}      // receives for every request whose handler has returned
}

// newHarness starts one. server may change it first, and gets the context of Listen.
func newHarness(t *testing.T, cfg Config, server ...func(context.Context, *http.Server)) *harness {
	t.Helper()
	opt, err := redis.ParseURL(redistest.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	return newHarnessAt(t, opt, cfg, server...)
}

func newHarnessAt(t *testing.T, opt *redis.Options, cfg Config,
	server ...func(context.Context, *http.Server),
) *harness {
	t.Helper()
	h := &harness{Worker: taskstest.Worker{T: t}, redis: redis.NewClient(opt), returned: make(chan struct{}, 100)}
	t.Cleanup(func() { _ = h.redis.Close() })
	var err error
	if h.Store, err = store.New(store.Config{Redis: h.redis}); err != nil {
		t.Fatal(err)
	}
	h.Desk = desk.New(h.Store, queue.New(h.Store, h.redis, time.Hour), rights.Policy{}, nil)
	h.source = New(cfg)
	h.source.submitLimit, h.source.waitCheck = time.Minute, time.Hour // whatever else the machine does
	ctx, stop := context.WithCancel(t.Context())
	h.stop = stop
	mux := http.NewServeMux()
	if err := h.source.Listen(ctx, mux, h.Desk); err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { h.returned <- struct{}{} }()
		mux.ServeHTTP(w, r)
	}))
	for _, set := range server {
		set(ctx, h.server.Config)
	}
	h.server.Start()
	t.Cleanup(h.server.Close)
	return h
}

// post sends a body and headers; the answer must start within 20 s.
func (h *harness) post(body string, headers ...http.Header) *http.Response {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 2*time.Minute)
	h.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.server.URL+"/api/chat", strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for _, more := range headers {
		maps.Copy(req.Header, more)
	}
	resp, err := h.server.Client().Do(req)
	if err != nil {
		h.Fatal(err)
	}
	return resp
}

// refused posts a body that must be answered by a problem, and returns the problem.
func (h *harness) refused(body string) intake.Problem {
	h.Helper()
	resp := h.post(body)
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
		h.Errorf("content type %q", got)
	}
	var p intake.Problem
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil {
		h.Fatal(err)
	}
	if p.Status != resp.StatusCode {
		h.Errorf("the problem says %d, the answer %d", p.Status, resp.StatusCode)
	}
	return p
}

// reading is a stream as a client reads it.
type reading struct {
	*harness
	body       io.ReadCloser
	in         *bufio.Reader
	id, thread string
}

// ask posts a body that must be accepted, and reads the first event.
func (h *harness) ask(body string) *reading {
	h.Helper()
	resp := h.post(body)
	h.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		h.Fatalf("%s %s: %s", resp.Status, resp.Header.Get("Content-Type"), b)
	}
	r := &reading{harness: h, body: resp.Body, in: bufio.NewReader(resp.Body)}
	first := r.event()
	if first["type"] != "task" {
		h.Fatalf("the first event is %v", first)
	}
	r.id, _ = first["id"].(string)
	r.thread, _ = first["thread"].(string)
	return r
}

// block reads up to the next empty line.
func (r *reading) block() string {
	r.Helper()
	var b bytes.Buffer
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			r.Fatalf("read stream: %v, after %q", err, b.String())
		}
		if line == "\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}

// data reads the next event's data, skipping heartbeats.
func (r *reading) data() string {
	r.Helper()
	for {
		for line := range strings.Lines(r.block()) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return strings.TrimSuffix(data, "\n")
			}
		}
	}
}

func (r *reading) event() map[string]any {
	r.Helper()
	var e map[string]any
	data := r.data()
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		r.Fatalf("event %q: %v", data, err)
	}
	return e
}

// rest reads all events to the end of the stream.
func (r *reading) rest() []map[string]any {
	r.Helper()
	var all []map[string]any
	for {
		data := r.data()
		if data == "[DONE]" {
			if left, err := io.ReadAll(r.in); err != nil || len(left) > 0 {
				r.Errorf("after [DONE] comes %q, %v", left, err)
			}
			return all
		}
		var e map[string]any
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.Fatalf("event %q: %v", data, err)
		}
		all = append(all, e)
	}
}
