package agent

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/google/go-cmp/cmp"
)

// impatient is a CLI that does not repeat a question that failed.
func impatient(c *Config) { c.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"} }

// The gateway counts what the model says it used, as the CLI does.
func TestCLIGatewayCounts(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	model.Answer("",
		modelfake.Turn{
			Tools: []modelfake.ToolCall{{Name: "Bash", Input: map[string]string{"command": "true"}}},
			Usage: modelfake.Usage{Input: 1000, Output: 30, CacheWrite: 500},
		},
		modelfake.Turn{Text: "Done.", Usage: modelfake.Usage{Input: 10, Output: 7, CacheRead: 1500}})
	res := runCLI(t, newCLI(t, model), Spec{
		ID: "counts", Dir: dir, Prompt: Message{Text: "x"}, Profile: Write,
	}, &host{})
	want := Usage{Input: 1010, Output: 37, CacheRead: 1500, CacheCreation: 500}
	if diff := cmp.Diff(want, res.API.Usage); diff != "" {
		t.Error(diff)
	}
	if res.Usage != want || res.API.Calls != 2 || res.API.Status != http.StatusOK || len(res.API.Errors) > 0 {
		t.Errorf("result %+v, api %+v", res, res.API)
	}
}

// A long wait fails in the CLI at once, which does not say how long: the gateway knows.
func TestCLIGatewayKnowsWhenToRetry(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	unified := http.Header{
		"Anthropic-Ratelimit-Unified-Status":               {"rejected"},
		"Anthropic-Ratelimit-Unified-Reset":                {strconv.FormatInt(reset.Unix(), 10)},
		"Anthropic-Ratelimit-Unified-Representative-Claim": {"five_hour"},
	}
	for name, c := range map[string]struct {
		credential Credential
		status     int
		header     http.Header
		class      Class
		after      time.Duration // from the answer; else
		at         time.Time
	}{
		"rate limit": {
			Credential{APIKey: "sk-ant-test-1"},
			http.StatusTooManyRequests,
			http.Header{"Retry-After": {"3600"}},
			ClassRateLimit, time.Hour,
			time.Time{},
		},
		"overloaded": {
			Credential{APIKey: "sk-ant-test-1"},
			529,
			http.Header{"Retry-After": {"600"}},
			ClassOverloaded,
			10 * time.Minute,
			time.Time{},
		},
		"usage limit": {
			Credential{OAuthToken: "oauth-1"}, http.StatusTooManyRequests, unified, ClassUsageLimit, 0, reset,
		},
		"other": {
			Credential{APIKey: "sk-ant-test-1"},
			http.StatusForbidden,
			http.Header{"Retry-After": {"600"}},
			ClassAuth,
			0,
			time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			model.Answer("", modelfake.Turn{Status: c.status, Header: c.header})
			start := time.Now()
			res := runCLI(t, newCLI(t, model, impatient, func(cfg *Config) { cfg.Credential = c.credential }),
				Spec{
					ID: "retry-" + strings.ReplaceAll(name, " ", "-"), Dir: t.TempDir(), Prompt: Message{Text: "x"},
					Profile: Read,
				}, &host{})
			if res.Error == nil || res.Error.Class != c.class || res.API.Status != c.status ||
				res.API.Errors[c.status] == 0 {
				t.Fatalf("error %v, api %+v", res.Error, res.API)
			}
			earliest, latest := start.Add(c.after), time.Now().Add(c.after)
			if c.after == 0 {
				earliest, latest = c.at, c.at
			}
			if res.RetryAt.Before(earliest) || res.RetryAt.After(latest) {
				t.Errorf("retry at %v, want between %v and %v", res.RetryAt, earliest, latest)
			}
			if long := time.Until(res.RetryAt) > soon; long == strings.Contains(res.Error.User, "Try again") &&
				c.class.Retry() != RetryNever {
				t.Errorf("again at %v: %s", res.RetryAt, res.Error.User)
			}
		})
	}
}

func TestCLIModelUnreachable(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	r := newCLI(t, model, func(c *Config) { c.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "1"} })
	model.Close()
	h := &host{}
	res := runCLI(t, r, Spec{ID: "down", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}, h)
	told := slices.ContainsFunc(h.events, func(e Event) bool {
		return e.Kind == Notice && e.Class == ClassOverloaded &&
			strings.Contains(e.Text, strings.TrimPrefix(r.cfg.BaseURL, "http://")+" cannot be reached: dial tcp ") &&
			strings.Contains(e.Text, "ANTHROPIC_BASE_URL") && strings.HasSuffix(e.Text, "Trying again (1 of 1).")
	})
	if !told {
		t.Errorf("reason, place or remedy is missing: %+v", h.events)
	}
	if res.Outcome != Failed || res.Error.Class != ClassOverloaded ||
		!strings.Contains(res.Error.Message, "connection refused") {
		t.Errorf("outcome %s, error %v", res.Outcome, res.Error)
	}
	if res.API.Calls == 0 || res.API.Errors[0] != res.API.Calls || res.API.Status != 0 {
		t.Errorf("api %+v", res.API)
	}
}

// The model goes on only when the host has heard what it said: any piece that is held back would end this at the
// run's limit.
func TestCLIGatewayStreams(t *testing.T) {
	t.Parallel()
	words := []string{"one ", "two ", "three."} // none ends as a secret begins
	heard := make(chan string, len(words))
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(kind, rest string) {
			_, _ = fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
			_ = http.NewResponseController(w).Flush()
		}
		say("message_start",
			`,"message":{"id":"m1","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}`)
		say("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
		for _, word := range words {
			say("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%q}`, word))
			select {
			case got := <-heard:
				if got != word {
					t.Errorf("heard %q, want %q", got, word)
				}
			case <-req.Context().Done():
			}
		}
		say("content_block_stop", `,"index":0`)
		say("message_delta", `,"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}`)
		say("message_stop", "")
	}))
	defer model.Close()
	h := &host{on: func(e Event) {
		if e.Kind == Text {
			heard <- e.Text
		}
	}}
	r := newCLI(t, newModel(t), func(c *Config) { c.BaseURL = model.URL })
	res := runCLI(t, r, Spec{
		ID: "pieces", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read, Limit: time.Minute,
	}, h)
	if res.Outcome != Done || res.Text != strings.Join(words, "") {
		t.Errorf("outcome %s, text %q", res.Outcome, res.Text)
	}
}

// The gateway should use the proxy; the CLI should reach the gateway without it.
func TestCLIBehindAProxy(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	model.Answer("", modelfake.Turn{Text: "through"})
	dead := httptest.NewServer(nil)
	dead.Close()
	r := newCLI(t, model, impatient, func(c *Config) {
		c.Getenv = func(v string) string {
			return map[string]string{
				"HTTP_PROXY": dead.URL, "http_proxy": dead.URL, "no_proxy": "inside.example",
			}[v]
		}
	})
	res := runCLI(t, r, Spec{ID: "proxy", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}, &host{})
	if res.Text != "through" {
		t.Errorf("%s %v", res.Outcome, res.Error)
	}
}

// A company's gateway that demands a certificate gets the worker's. Its own is of a private authority.
func TestCLIClientCertificate(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	env := modelfake.ToolCall{Name: "Bash", Input: map[string]string{"command": "env"}}
	model.Answer("", modelfake.Turn{Tools: []modelfake.ToolCall{env}}, modelfake.Turn{Text: "Answered."})
	behind, err := url.Parse(model.URL())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	server.TLS.VerifyConnection = func(c tls.ConnectionState) error {
		if !c.PeerCertificates[0].Equal(server.Certificate()) { // both ends have the same
			return errors.New("another certificate")
		}
		return nil
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := filepath.Join(t.TempDir(), "client.pem"), filepath.Join(t.TempDir(), "client.key")
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: server.Certificate().Raw}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set := map[string]string{
		"NODE_EXTRA_CA_CERTS": certFile, "CLAUDE_CODE_CLIENT_CERT": certFile, "CLAUDE_CODE_CLIENT_KEY": keyFile,
		"PATH": os.Getenv("PATH"),
	}
	r := newCLI(t, model, impatient, func(c *Config) {
		c.BaseURL, c.Getenv = server.URL, func(name string) string { return set[name] }
	})
	res := runCLI(t, r, Spec{ID: "certificate", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Write}, &host{})
	if res.Text != "Answered." {
		t.Errorf("%s %v", res.Outcome, res.Error)
	}
	for _, q := range model.Requests() {
		if strings.Contains(string(q.Body), keyFile) {
			t.Error("the run knows where the key is")
		}
	}
}

// Without a gateway the CLI has the credential itself, and health says what that means.
func TestCLIDirect(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	model.Answer("", modelfake.Turn{Text: "direct"})
	r := newCLI(t, model, func(c *Config) { c.Direct = true })
	res := runCLI(t, r, Spec{ID: "direct", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}, &host{})
	if res.Text != "direct" || res.API != nil || model.Requests()[0].Key != "sk-ant-test-credential" {
		t.Errorf("result %+v", res)
	}
	if encoding := model.Requests()[0].Header.Get("Accept-Encoding"); encoding == "identity" {
		t.Error("the request went through a gateway")
	}
	if h := r.Health(t.Context()); !h.OK || h.Gateway ||
		!strings.Contains(strings.Join(h.Notices, ";"), "ERRAND_GATEWAY=on") {
		t.Errorf("health %+v", h)
	}
}

// The CLI takes the run's gateway for the model's. People get the address of the model, which they can check.
func TestCLIOverloadedNamesTheModel(t *testing.T) {
	t.Parallel()
	model, h := newModel(t), &host{}
	model.Answer("", modelfake.Turn{Status: 529})
	r := newCLI(t, model, impatient)
	res := runCLI(t, r, Spec{ID: "overloaded", Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read}, h)
	address := "(" + strings.TrimPrefix(model.URL(), "http://") + ")"
	if res.Error == nil || res.Error.Class != ClassOverloaded || !strings.Contains(res.Error.Message, address) {
		t.Errorf("failed with %v, without %s", res.Error, address)
	}
	if last := h.events[len(h.events)-1]; last.Kind != TurnEnd || !strings.Contains(last.Text, address) {
		t.Errorf("the last event is %+v", last)
	}
	log, err := os.ReadFile(r.logPath(unique("overloaded"), ".log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), address) || strings.Count(string(log), address) != strings.Count(string(log), "127.0.0.1") {
		t.Errorf("log:\n%s", log)
	}
}
