package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// serve plays a server until the end of the test.
func serve(t testing.TB, answer http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s
}

// upstream returns the way to a model, without an environment unless c has one.
func upstream(t testing.TB, c Config) *Upstream {
	t.Helper()
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	u, err := NewUpstream(c)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newGateway returns the gateway of a run that asks the model at url with credential.
func newGateway(t testing.TB, url string, credential Credential, change ...func(*Upstream)) *Gateway {
	t.Helper()
	u := upstream(t, Config{BaseURL: url, Credentials: []Named{{Credential: credential}}})
	for _, f := range change {
		f(u)
	}
	return open(t, u)
}

// open opens the gateway of a run that may use the named credentials.
func open(t testing.TB, u *Upstream, names ...string) *Gateway {
	t.Helper()
	g, err := u.Open(Run{Note: func(string, ...any) {}, Credentials: names})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// request is what the CLI would ask of g.
func request(t testing.TB, g *Gateway, credential Credential, path, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(credential.With(g.token).header())
	return req
}

// anyQuestion is one that a gateway passes.
const anyQuestion = `{"model":"claude-opus-5-5","max_tokens":64,"stream":true}`

// answerTo sends a request and returns the status and the body of the answer; 0 and the error if the request failed.
func answerTo(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}

// unread asks any question, and returns the answer before its body is read.
func unread(t *testing.T, g *Gateway) *http.Response {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(request(t, g, kinds["key"], "/v1/messages", anyQuestion))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

var kinds = map[string]Credential{
	"key": {APIKey: "the-real-key"}, "oauth": {OAuthToken: "the-real-token"}, "bearer": {AuthToken: "the-real-bearer"},
}

// Requests should arrive unchanged except for the credential, and responses unchanged.
func TestGatewayPutsTheCredentialIn(t *testing.T) {
	t.Parallel()
	for name, credential := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got *http.Request
			var body []byte
			model := serve(t, func(w http.ResponseWriter, req *http.Request) {
				got = req
				body, _ = io.ReadAll(req.Body)
				w.Header().Set("Request-Id", "req_1")
				_, _ = io.WriteString(w, "the answer")
			})
			g := newGateway(t, model.URL+"/base", credential)
			req := request(t, g, credential, "/v1/messages?beta=true", anyQuestion)
			req.Header.Set("Anthropic-Beta", "effort-2025-11-24, fast-mode-2026-02-01,claude-code-20250219")
			req.Header.Set("Accept-Encoding", "gzip, br")
			req.Header.Set("User-Agent", "claude-cli")
			for _, foreign := range []string{"Authorization", "X-Api-Key", "Cookie", "Anthropic-Workspace-Id"} {
				if own, _ := credential.header(); foreign != own {
					req.Header.Set(foreign, "someone else's")
				}
			}
			if status, text := answerTo(t, req); status != http.StatusOK || text != "the answer" {
				t.Fatalf("answer %d %q", status, text)
			}
			if got.RequestURI != "/base/v1/messages?beta=true" || string(body) != anyQuestion {
				t.Errorf("the model got %s with %q", got.RequestURI, body)
			}
			header, value := credential.header()
			want := http.Header{
				"Anthropic-Beta": {"effort-2025-11-24,claude-code-20250219"}, "User-Agent": {"claude-cli"},
				"Accept-Encoding": {"identity"}, "Content-Length": {strconv.Itoa(len(anyQuestion))},
			}
			want.Set(header, value)
			if diff := cmp.Diff(want, got.Header); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only the run should have access, and not to every path.
func TestGatewayRefuses(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	model := serve(t, func(http.ResponseWriter, *http.Request) { calls.Add(1) })
	for name, credential := range kinds {
		g, other := newGateway(t, model.URL, credential), newGateway(t, model.URL, credential)
		if seen := redact.New().String("env: " + g.token); strings.Contains(seen, g.token) || g.token == other.token {
			t.Errorf("logs would show %s", seen)
		}
		header, _ := credential.header()
		for what, change := range map[string]func(*http.Request){
			"nothing":             func(req *http.Request) { req.Header.Del(header) },
			"an empty credential": func(req *http.Request) { req.Header.Set(header, "") },
			"the token of another run": func(req *http.Request) {
				req.Header.Set(credential.With(other.token).header())
			},
			"a part of the token": func(req *http.Request) {
				req.Header.Set(credential.With(g.token[:20]).header())
			},
			"the credential": func(req *http.Request) { req.Header.Set(credential.header()) },
			"the token in another head": func(req *http.Request) {
				req.Header.Del(header)
				req.Header.Set("Cookie", g.token)
			},
		} {
			req := request(t, g, credential, "/v1/messages", anyQuestion)
			change(req)
			if status, text := answerTo(t, req); status != http.StatusUnauthorized {
				t.Errorf("%s, with %s: %d %s", name, what, status, text)
			}
		}
		for _, path := range []string{
			"/", "/v1/models", "/v1/files", "/v1/messages/batches", "/v1/messages/", "/v1/messages/../files",
			"/v1/messages%2F..%2Ffiles",
		} {
			if status, text := answerTo(t, request(t, g, credential, path, "{}")); status < 300 {
				t.Errorf("%s, %s: %d %s", name, path, status, text)
			}
		}
		req := request(t, g, credential, "/v1/messages", "")
		req.Method = http.MethodGet
		if status, text := answerTo(t, req); status != http.StatusMethodNotAllowed {
			t.Errorf("%s, GET: %d %s", name, status, text)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d requests reached the model", n)
	}
}

// held is a model that takes questions and does not answer them.
type held struct {
	asked chan struct{}
	left  atomic.Int32
}

func (h *held) RoundTrip(req *http.Request) (*http.Response, error) {
	h.asked <- struct{}{}
	<-req.Context().Done()
	h.left.Add(1)
	return nil, req.Context().Err()
}

func TestGatewayDiesWithItsRun(t *testing.T) {
	t.Parallel()
	model := &held{asked: make(chan struct{})}
	g := newGateway(t, "http://model.test", kinds["key"], func(u *Upstream) { u.keys.keys[0].transport = model })
	addr := strings.TrimPrefix(g.url, "http://")
	var open []net.Conn
	ask := "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + g.token + "\r\nContent-Length: " +
		strconv.Itoa(len(anyQuestion)) + "\r\n\r\n" + anyQuestion
	for _, sent := range []string{"", ask[:len(ask)-1], ask} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	<-model.asked
	g.Close()
	if model.left.Load() != 1 {
		t.Error("the model is still being asked")
	}
	for i, c := range open {
		if got, _ := io.ReadAll(c); len(got) > 0 { // waits for the end of the connection
			t.Errorf("connection %d got %q", i, got)
		}
	}
	if c, err := net.Dial("tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the address is still served: %v %v", c, err)
	}
	g.Close() // may be repeated
}

// Each piece is there before the model says the next, also with several credentials: a gateway that held one back would
// block both.
func TestGatewayStreams(t *testing.T) {
	t.Parallel()
	pieces := []string{"event: ping\n", "data: {}\n\n", "half a li", "ne\n", "x"}
	heard := make(chan struct{})
	model := serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-heard:
			case <-req.Context().Done():
			}
		}
	})
	for _, credentials := range [][]Named{{apiKey("a")}, {apiKey("a"), apiKey("b")}} {
		u, _ := several(t, &bank{Server: model}, credentials...)
		res := unread(t, open(t, u))
		defer res.Body.Close()
		for _, want := range pieces {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
				t.Fatalf("read %q, %v; want %q", got, err, want)
			}
			heard <- struct{}{}
		}
		if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
			t.Errorf("at the end: %q, %v", rest, err)
		}
	}
}

// A CLI that does not read holds the model up, instead of filling the worker's memory.
func TestGatewayHoldsUpTheModel(t *testing.T) {
	t.Parallel()
	const all = 64 << 20 // far more than the buffers of the connections
	wrote := make(chan int, 1)
	model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * time.Second))
		w.Header().Set("Content-Type", "text/event-stream")
		piece, sent := bytes.Repeat([]byte("data: {}\n\n"), 10_000), 0
		for sent < all {
			n, err := w.Write(piece)
			if sent += n; err != nil {
				break
			}
		}
		wrote <- sent
	})
	g := newGateway(t, model.URL, kinds["key"])
	res := unread(t, g)
	defer res.Body.Close()
	if sent := <-wrote; sent >= all {
		t.Errorf("the model could send %d bytes that nothing has read", sent)
	}
}

// What the model breaks off is broken off for the CLI, too, and a model that is not there is a connection that fails.
func TestGatewayHidesNoFailure(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	g := newGateway(t, model.URL, kinds["key"])
	if status, text := answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion)); status != 0 {
		t.Errorf("half an answer passed for a whole one: %d %q", status, text)
	}
	model.Close()
	if status, text := answerTo(t, request(t, g, kinds["key"], "/v1/messages", anyQuestion)); status != 0 {
		t.Errorf("an unexpected answer: %d %q", status, text)
	}
	api := g.Seen()
	if api.Calls != 2 || api.Status != 0 || api.Errors[0] != 1 || !strings.Contains(api.Problem, "connection refused") {
		t.Errorf("seen %+v", api)
	}
}

// Held connections should not lock out others: not those without a token, whether they are silent or slow, and not
// those that have shown it.
func TestGatewayDropsTheIdle(t *testing.T) {
	t.Parallel()
	model := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "answered")
	})
	g := newGateway(t, model.URL, kinds["key"])
	hold := func(sent string) net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := hold("")
	for range 2 * MaxConns {
		hold("")
		hold("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Ap")
		hold("POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n")
	}
	if _, err := first.Read(make([]byte, 1)); err == nil {
		t.Error("the oldest idle connection is still open")
	}
	var refused net.Conn
	for range 2 {
		refused = hold("POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Api-Key: wrong\r\nContent-Length: 99\r\n\r\n")
		res, err := io.ReadAll(refused) // to the end of the connection
		if err != nil || !strings.HasPrefix(string(res), "HTTP/1.1 401 ") {
			t.Errorf("without the token: %q, %v", res, err)
		}
	}
	var kept []net.Conn
	for range 2 * MaxConns {
		c := hold("")
		if err := request(t, g, kinds["key"], "/v1/messages", anyQuestion).Write(c); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(res.Body); string(body) != "answered" {
			t.Fatalf("answer %d %q", res.StatusCode, body)
		}
		_ = res.Body.Close()
		kept = append(kept, c)
	}
	if _, err := kept[0].Read(make([]byte, 1)); err == nil {
		t.Error("as many connections stay open as the run likes")
	}
}
