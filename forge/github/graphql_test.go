package github

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"
)

// Errors in a response of status 200 are understood as REST's are.
func TestGraphQLErrors(t *testing.T) {
	t.Parallel()
	reset := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		status  int
		body    string
		limited bool
		lasting bool
		code    int
	}{
		"data":          {200, `{"data":{"x":1}}`, false, false, 0},
		"not found":     {200, `{"data":{"x":null},"errors":[{"type":"NOT_FOUND","message":"m"}]}`, false, true, 404},
		"forbidden":     {200, `{"data":{"x":null},"errors":[{"type":"FORBIDDEN","message":"m"}]}`, false, true, 403},
		"scopes":        {200, `{"errors":[{"type":"INSUFFICIENT_SCOPES","message":"m"}]}`, false, true, 403},
		"unknown field": {200, `{"errors":[{"message":"m","extensions":{"code":"undefinedField"}}]}`, false, true, 422},
		"trouble":       {200, `{"errors":[{"message":"Something went wrong"}]}`, false, false, 0},
		"rate limit":    {200, `{"errors":[{"type":"RATE_LIMITED","message":"m"}]}`, true, false, 0},
		"secondary":     {403, `{"message":"You have exceeded a secondary rate limit"}`, true, false, 403},
		"unauthorised":  {401, `{"message":"Bad credentials"}`, false, false, 401},
		"no JSON":       {200, `<html>`, false, false, 0},
		"no data":       {200, `{}`, false, false, 0},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-RateLimit-Remaining", "100")
			w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		var into struct{ X *int }
		err := GraphQL(t.Context(), clientAt(t, server.URL+"/"), "{ x }", nil, &into)
		server.Close()
		if (err == nil) != (name == "data") || (into.X != nil) != (name == "data") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if wait, limited := RetryAfter(err); limited != c.limited ||
			limited && name == "rate limit" && wait < 50*time.Minute {
			t.Errorf("%s: limited %v, %s", name, limited, wait)
		}
		if Permanent(err) != c.lasting || StatusCode(err) != c.code {
			t.Errorf("%s: lasting %v, status %d: %v", name, Permanent(err), StatusCode(err), err)
		}
	}
}

// github.com and an enterprise server have it at different paths.
func TestGraphQLAddress(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{"/": "/graphql", "/api/v3/": "/api/graphql"} {
		got := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.URL.Path
			_, _ = w.Write([]byte(`{"data":{}}`))
		}))
		err := GraphQL(t.Context(), clientAt(t, server.URL+base), "{ x }", nil, &struct{}{})
		server.Close()
		if err != nil || got != "POST "+want {
			t.Errorf("%s: %s, %v", base, got, err)
		}
	}
}

func clientAt(t *testing.T, base string) *github.Client {
	t.Helper()
	gh := github.NewClient(nil)
	gh.BaseURL = must(url.Parse(base))
	return gh
}
