package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// refusing is a model that refuses one credential with a status and headers, and counts how often it did.
func refusing(t *testing.T, model *modelfake.Server, credential string, status int,
	header http.Header,
) (address string, refused *atomic.Int32) {
	t.Helper()
	u, err := url.Parse(model.URL())
	if err != nil {
		t.Fatal(err)
	}
	refused = new(atomic.Int32)
	proxy := httputil.NewSingleHostReverseProxy(u)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Api-Key") != credential && req.Header.Get("Authorization") != "Bearer "+credential {
			proxy.ServeHTTP(w, req)
			return
		}
		refused.Add(1)
		maps.Copy(w.Header(), header)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, `{"type":"error","error":{"type":"rate_limit_error","message":"no more today"}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL, refused
}

// usageLimit is what the model says about a usage limit.
func usageLimit(until time.Time) http.Header {
	return http.Header{
		"Anthropic-Ratelimit-Unified-Status":               {"rejected"},
		"Anthropic-Ratelimit-Unified-Reset":                {strconv.FormatInt(until.Unix(), 10)},
		"Anthropic-Ratelimit-Unified-Representative-Claim": {"five_hour"},
	}
}

// Of runs with two credentials, one of which has reached its usage limit, the first one fails and can be repeated at
// once. The next one starts with the other one.
func TestCLIStartsWithAnotherCredential(t *testing.T) {
	t.Parallel()
	model := newModel(t, bash("env; cat /proc/[0-9]*/environ"), modelfake.Turn{Text: "Answered."})
	address, refused := refusing(t, model, "sk-ant-first-1", http.StatusTooManyRequests,
		usageLimit(time.Now().Add(2*time.Hour)))
	var log bytes.Buffer
	r := newCLI(t, model, impatient, func(c *Config) {
		c.BaseURL, c.Credential, c.Log = address, Credential{}, slog.New(slog.NewTextHandler(&log, nil))
		c.Credentials = []ModelCredential{
			{Name: "first", APIKey: `{{env "FIRST"}}`}, {Name: "second", APIKey: `{{env "SECOND"}}`},
		}
		c.Getenv = func(name string) string {
			return map[string]string{
				"FIRST": "sk-ant-first-1", "SECOND": "sk-ant-second-2", "PATH": os.Getenv("PATH"),
			}[name]
		}
	})
	res := runCLI(t, r, Spec{ID: "refused", Profile: Write}, &host{})
	if e := res.Error; e == nil || e.Class != ClassUsageLimit || res.Retry() != RetryReset || res.RetryAt.IsZero() ||
		res.RetryAt.After(time.Now()) || res.API.Credential != "first" {
		t.Errorf("refused: %v, again %s at %v", res.Error, res.Retry(), res.RetryAt)
	}
	asked := refused.Load()
	res = runCLI(t, r, Spec{ID: "then", Profile: Write}, &host{})
	if res.Outcome != Done || res.Text != "Answered." || res.API.Credential != "second" || len(res.API.Errors) > 0 {
		t.Errorf("then: %s, %v, api %+v", res.Outcome, res.Error, res.API)
	}
	if n := refused.Load(); n != asked {
		t.Errorf("the credential with the limit was asked %d times more", n-asked)
	}
	for _, q := range model.Requests() {
		if q.Key != "sk-ant-second-2" || bytes.Contains(q.Body, []byte("sk-ant-second-2")) ||
			bytes.Contains(q.Body, []byte("sk-ant-first-1")) {
			t.Errorf("asked with %s, or the run has seen a credential", q.Key)
		}
	}
	if said := log.String(); strings.Count(said, "is held") != 1 || strings.Contains(said, "sk-ant-first-1") {
		t.Errorf("log:\n%s", said)
	}
}

// Only runs of its repositories and its people use a credential.
func TestCredentialsOfRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "talk", func(c *Config) {
		c.Credentials = []ModelCredential{
			{Name: "web", APIKey: "sk-ant-web-1", Repositories: []string{"acme/web"}},
			{Name: "acme", APIKey: "sk-ant-acme-2", Repositories: []string{"acme/*"}},
			{Name: "ann", APIKey: "sk-ant-ann-1", People: []string{"ann"}},
		}
	})
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Repo: "Acme/web"}, "web"},
		{Spec{Repo: "acme/api", Person: "bob"}, "acme"},
		{Spec{Repo: "acme/web", Also: []Also{{"acme/api", t.TempDir()}}}, "acme"},
		{Spec{Repo: "other/web", Person: "ann"}, "ann"},
	} {
		if res := b.run(t, t.Context(), c.spec, &host{}); res.API == nil || res.API.Credential != c.want {
			t.Errorf("%s: %v, %+v", c.want, res.Error, res.API)
		}
	}
	_, err := b.Run(t.Context(), b.with(t, Spec{Repo: "other/web", Person: "bob"}), &host{})
	if err == nil || !strings.Contains(err.Error(),
		`none of the credentials for the model is for repository "other/web" and person "bob"`) {
		t.Errorf("without a credential: %v", err)
	}
	if _, err := b.Offer(t.Context(), Spec{ID: unique("offer"), Dir: t.TempDir(), Profile: Read}); err != nil {
		t.Errorf("an offer needs a credential: %v", err)
	}
}

// The CLI, which knows only list prices, gets no maximum where the operator has others, and no doubts follow from what it
// counts.
func TestCLIOtherPrices(t *testing.T) {
	t.Parallel()
	model := newModel(t, modelfake.Turn{Text: "Answered.", Usage: modelfake.Usage{Input: 1_000_000}}) // $4 at list price
	var log strings.Builder
	r := newCLI(t, model, impatient, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		c.Credential, c.Credentials = Credential{}, []ModelCredential{{
			Name: "team", APIKey: "sk-ant-team-1",
		}}
		c.Prices = PriceList{{Pattern: "claude-*", Price: Price{Input: 0.5, Output: 1}}}
	})
	res := runCLI(t, r, Spec{ID: "other-prices", MaxUSD: 2}, &host{})
	if res.Outcome != Done || math.Abs(res.CostUSD-0.5) > 0.01 || res.API.Credential != "team" {
		t.Errorf("%s, %v, $%f, api %+v", res.Outcome, res.Error, res.CostUSD, res.API)
	}
	if log.String() != "" { // the CLI counts at list prices
		t.Errorf("warnings: %s", log.String())
	}
	if _, err := r.Offer(t.Context(), Spec{ID: unique("offer"), Dir: t.TempDir(), Profile: Read}); err != nil {
		t.Errorf("an offer: %v", err)
	}
}

func TestCheckCredentials(t *testing.T) {
	t.Parallel()
	token := func(context.Context) (string, error) { return "token", nil }
	sky := func(string) (cloud.Provider, error) { return nil, errors.New("no clouds today") }
	env := func(name string) string { return map[string]string{"K": "key-value-1", "LINES": "a\nb"}[name] }
	for _, c := range []struct {
		credential ModelCredential
		want       string // empty: nothing is wrong
	}{
		{ModelCredential{APIKey: `{{env "K"}}`, Repositories: []string{"acme/*"}}, ""},
		{ModelCredential{}, "no value, or several"},
		{ModelCredential{APIKey: "a", OAuthToken: "b"}, "no value, or several"},
		{ModelCredential{AuthToken: `{{env "NONE"}}`}, "NONE is not set"},
		{ModelCredential{AuthToken: `{{env "LINES"}}`}, "more than one line"},
		{ModelCredential{APIKey: "a", Repositories: []string{"["}}, "not a pattern"},
		{ModelCredential{AuthToken: "a", Token: token}, "no value, or several"},
		{ModelCredential{AuthToken: "a", Cloud: sky}, "no value, or several"},
	} {
		c.credential.Name = "it"
		list := []ModelCredential{c.credential}
		errs, secrets := CheckCredentials(list, env), CredentialSecrets(list, env)
		if (c.want == "") != (len(errs) == 0) || c.want != "" && !strings.Contains(errs[0].Error(), c.want) ||
			(len(secrets) == 1) != (c.want == "") {
			t.Errorf("%+v: %v, secrets %q", c.credential, errs, secrets)
		}
		if _, err := New(Config{LogDir: t.TempDir(), Credentials: list, Getenv: env}); (err == nil) != (c.want == "") {
			t.Errorf("%+v: New: %v", c.credential, err)
		}
	}
	if got := CredentialSecrets([]ModelCredential{{APIKey: `{{env "K"}}`}}, env); got[0] != "key-value-1" {
		t.Errorf("secrets %q", got)
	}
	for name, c := range map[string]struct {
		credential ModelCredential
		secrets    []string
		err        string // of New; empty: none
	}{
		"token": {ModelCredential{Token: token}, nil, ""},
		"cloud": {ModelCredential{Cloud: sky}, nil, `credential "it": no clouds today`},
		"cloud and a key": {
			ModelCredential{Cloud: sky, APIKey: `{{env "K"}}`},
			[]string{"key-value-1"},
			`credential "it": no clouds today`,
		},
	} {
		c.credential.Name = "it"
		list := []ModelCredential{c.credential}
		if errs, secrets := CheckCredentials(list, env), CredentialSecrets(list, env); len(errs) > 0 ||
			!slices.Equal(secrets, c.secrets) {
			t.Errorf("%s: %v, secrets %q", name, errs, secrets)
		}
		if _, err := New(Config{LogDir: t.TempDir(), Credentials: list, Getenv: env}); (c.err == "") != (err == nil) ||
			err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: New: %v", name, err)
		}
	}
}

// The model may quote a credential that it refuses.
func TestCLIRefusedKeyIsRedacted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":"unknown key %s"}}`,
			req.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(server.Close)
	r := newCLI(t, newModel(t), impatient, func(c *Config) { c.BaseURL = server.URL })
	all := CheckModel(t.Context(), r, "")
	if len(all) != 1 || all[0].Problem == nil || !strings.Contains(all[0].Problem.Message, "unknown key [redacted]") {
		t.Errorf("%+v", all)
	}
	res := runCLI(t, r, Spec{ID: "refused-key"}, &host{})
	if e := res.Error; e == nil || e.Class != ClassAuth || !strings.Contains(e.Message, "unknown key [redacted]") {
		t.Errorf("%+v", e)
	}
	if text := fmt.Sprintf("%q %q %+v", res.Text, res.Partial, res.API); strings.Contains(text, "sk-ant-test") {
		t.Errorf("%s", text)
	}
}
