package agent

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// impatient is a CLI that does not repeat a question that failed.
func impatient(c *Config) { c.Env = map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"} }

// A long wait fails in the CLI at once, which does not say how long: the gateway knows. The CLI takes the run's gateway
// for the model's. People get the address of the model, which they can check.
func TestCLIGatewayKnowsWhenToRetry(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		credential Credential
		status     int
		header     http.Header
		class      Class
		after      time.Duration // from the answer; else
		at         time.Time
	}{
		"overloaded": {
			Credential{APIKey: "sk-ant-test-1"},
			529,
			http.Header{"Retry-After": {"600"}},
			ClassOverloaded,
			10 * time.Minute,
			time.Time{},
		},
		"usage limit": {
			Credential{OAuthToken: "oauth-1"}, http.StatusTooManyRequests, usageLimit(reset), ClassUsageLimit, 0, reset,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newModel(t, modelfake.Turn{Status: c.status, Header: c.header})
			start := time.Now()
			r := newCLI(t, model, impatient, func(cfg *Config) { cfg.Credential = c.credential })
			id, h := "retry-"+strings.ReplaceAll(name, " ", "-"), &host{}
			res := runCLI(t, r, Spec{ID: id}, h)
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
			if long := time.Until(res.RetryAt) > soon; long == strings.Contains(res.Error.User, "Try again") {
				t.Errorf("again at %v: %s", res.RetryAt, res.Error.User)
			}
			if c.class == ClassUsageLimit {
				return
			}
			address, log := "("+strings.TrimPrefix(model.URL(), "http://")+")", r.read(t, id, ".log")
			for _, text := range []string{res.Error.Message, h.said(TurnEnd), log} {
				if !strings.Contains(text, address) || strings.Count(text, address) != strings.Count(text, "127.0.0.1") {
					t.Errorf("another address than %s: %s", address, text)
				}
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
	res := runCLI(t, r, Spec{ID: "down"}, h)
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

// Without a gateway the CLI has the credential itself, and health says what that means.
func TestCLIDirect(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Text: "direct"})
	r := newCLI(t, model, func(c *Config) { c.Direct = true })
	res := runCLI(t, r, Spec{ID: "direct"}, &host{})
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
