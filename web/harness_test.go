package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
	"github.com/errand-fleet/errand/web/internal/respond"
)

const token = "correct-horse"

// harness is a console on a real Redis. The test acts as the sources and the workers.
type harness struct {
	taskstest.Worker
	handler *Handler
	redis   *redis.Client
	config  Config
	server  *httptest.Server
	logs    string
}

// newHarness starts a console with a changed configuration.
func newHarness(t *testing.T, set ...func(*Config)) *harness {
	t.Helper()
	return newHarnessOn(t, redistest.Start(t), set...)
}

// atMidday starts a console where neither the day nor the hour ends during the test.
func atMidday(t *testing.T, set ...func(*Config)) *harness {
	t.Helper()
	url, midday := redisclock.AtMidday(t)
	return newHarnessOn(t, url, append(set, func(c *Config) { c.now = func() time.Time { return midday } })...)
}

func newHarnessOn(t *testing.T, url string, set ...func(*Config)) *harness {
	t.Helper()
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	h := newHarnessAt(t, opt, set...)
	// The data is older than the tasks of the tests, so that none of them is in doubt.
	if err := h.redis.HSet(t.Context(), "errand:epoch", "process", "", "since", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return h
}

func newHarnessAt(t *testing.T, opt *redis.Options, set ...func(*Config)) *harness {
	t.Helper()
	h := &harness{Worker: taskstest.Worker{T: t}, redis: redis.NewClient(opt), logs: t.TempDir()}
	t.Cleanup(func() { _ = h.redis.Close() })
	var err error
	if h.Store, err = store.New(store.Config{Redis: h.redis}); err != nil {
		t.Fatal(err)
	}
	h.Desk = desk.New(h.Store, queue.New(h.Store, h.redis, time.Hour), rights.Policy{}, nil)
	cfg := Config{
		Inbox: receivers{},
		Token: token, Desk: h.Desk, Store: h.Store, LogDir: h.logs,
		Redis: asynq.RedisClientOpt{Addr: opt.Addr, Username: opt.Username, Password: opt.Password},
	}
	for _, s := range set {
		s(&cfg)
	}
	h.config = cfg
	if h.handler, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.handler.Close() })
	h.server = httptest.NewServer(h.handler)
	t.Cleanup(h.server.Close)
	// Tests check redirects and do not follow them.
	h.server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return h
}

// answer is a response and its body.
type answer struct {
	*http.Response
	text string
}

// header is a list of names and values. An empty value removes a header.
type header []string

// request returns a request with the token, unless the header overrides it.
func (h *harness) request(method, path, body string, hs header) *http.Request {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 2*time.Minute)
	h.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(hs); i += 2 {
		if hs[i+1] == "" {
			req.Header.Del(hs[i])
		} else {
			req.Header.Set(hs[i], hs[i+1])
		}
	}
	return req
}

func (h *harness) do(method, path, body string, hs ...string) answer {
	h.Helper()
	return h.send(h.request(method, path, body, hs))
}

func (h *harness) send(req *http.Request) answer {
	h.Helper()
	resp, err := h.server.Client().Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	return answer{resp, string(b)}
}

func (h *harness) get(path string, hs ...string) answer {
	h.Helper()
	return h.do(http.MethodGet, path, "", hs...)
}

// into decodes an answer and checks its status.
func (h *harness) into(a answer, status int, v any) {
	h.Helper()
	if a.StatusCode != status {
		h.Fatalf("%s %s: %s: %s", a.Request.Method, a.Request.URL.Path, a.Status, a.text)
	}
	if err := json.Unmarshal([]byte(a.text), v); err != nil {
		h.Fatalf("%v: %s", err, a.text)
	}
}

// problem checks that an answer is a problem document and returns its detail.
func (h *harness) problem(a answer, status int) (detail string) {
	h.Helper()
	var p respond.Problem
	h.into(a, status, &p)
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" || p.Status != status || p.Title == "" ||
		p.Detail == "" {
		h.Errorf("%s %s: %s %+v", a.Request.Method, a.Request.URL.Path, got, p)
	}
	return p.Detail
}

// submit submits the n-th task.
func (h *harness) submit(n int, change ...func(*tasks.Task)) string {
	h.Helper()
	t := tasks.Task{
		ID: tasks.NewID(time.UnixMicro(1700000000000000+int64(n)), "test", "x"), Source: "test", Kind: "mention",
		Thread: "test/t", Class: tasks.Interactive, Profile: agent.Write, Actor: "ann", Prompt: "Do it",
	}
	for _, c := range change {
		c(&t)
	}
	r, err := h.Desk.Submit(h.Context(), t)
	if err != nil {
		h.Fatal(err)
	}
	return r.ID
}

func (h *harness) log(name, text string) {
	h.Helper()
	if err := os.WriteFile(h.logs+"/"+name, []byte(text), 0o600); err != nil {
		h.Fatal(err)
	}
}

// contains checks that an answer contains the parts, or with a leading "!" does not.
func (h *harness) contains(a answer, status int, parts ...string) {
	h.Helper()
	if a.StatusCode != status {
		h.Fatalf("%s %s: %s: %s", a.Request.Method, a.Request.URL.Path, a.Status, a.text)
	}
	for _, part := range parts {
		unwanted, not := strings.CutPrefix(part, "!")
		if strings.Contains(a.text, unwanted) == not {
			h.Errorf("%s %s: want %q in %s", a.Request.Method, a.Request.URL.Path, part, a.text)
		}
	}
}
