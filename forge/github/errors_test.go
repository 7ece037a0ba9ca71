package github

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"
)

const secondaryDocs = `"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"`

// shapes are GitHub's refusals and what they mean. wait is 0 if it is no rate limit.
var shapes = []struct {
	name   string
	status int
	header map[string]string
	body   string
	wait   time.Duration
	lasts  bool
}{
	{
		"primary", 403,
		map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+1800"},
		`{}`,
		30 * time.Minute, false,
	},
	{"primary without reset", 403, map[string]string{"X-RateLimit-Remaining": "0"}, `{}`, time.Minute, false},
	{
		"primary, over by now", 403,
		map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "-5"},
		`{}`,
		time.Second, false,
	},
	{
		"primary as 429", 429,
		map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+1800"},
		`{}`,
		30 * time.Minute, false,
	},
	{"secondary", 403, map[string]string{"Retry-After": "120"}, `{` + secondaryDocs + `}`, 2 * time.Minute, false},
	{"secondary without a time", 403, nil, `{` + secondaryDocs + `}`, time.Minute, false},
	{"secondary by its text", 403, nil, `{"message":"You have exceeded a secondary rate limit."}`, time.Minute, false},
	{
		"secondary by its header", 403,
		map[string]string{"Retry-After": "120"},
		`{"message":"Slow down."}`,
		2 * time.Minute, false,
	},
	{
		"secondary as 429", 429,
		map[string]string{"Retry-After": "120"},
		`{` + secondaryDocs + `}`,
		2 * time.Minute, false,
	},
	// The hourly limit is not exhausted, so its reset time means nothing.
	{"secondary as 429, by the hour", 429, map[string]string{
		"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": "+1800",
	}, `{}`, time.Minute, false},
	{"bare 429", 429, nil, `Too many requests`, time.Minute, false},
	{"at once", 429, map[string]string{"Retry-After": "0"}, `{}`, time.Second, false},
	{
		"not allowed", 403,
		map[string]string{"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": "+1800"},
		`{"message":"Resource not accessible by integration"}`, 0, true,
	},
	{"credentials", 401, nil, `{}`, 0, false},
	{"gone", 404, nil, `{}`, 0, true},
	{"gone for good", 410, nil, `{}`, 0, true},
	{"not as it should be", 422, nil, `{}`, 0, true},
	{"broken", 502, nil, `<html>`, 0, false},
	{"overloaded", 503, map[string]string{"Retry-After": "120"}, `{}`, 0, false},
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range shapes {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range c.header {
				if n, err := strconv.Atoi(v); k == "X-RateLimit-Reset" && err == nil {
					v = strconv.FormatInt(time.Now().Unix()+int64(n), 10)
				}
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		defer server.Close()
		base := must(url.Parse(server.URL + "/"))

		gh := github.NewClient(nil)
		gh.BaseURL = base
		began := time.Now()
		_, _, err := gh.Users.Get(t.Context(), "")
		wantWait(t, c.name, err, answered{c.wait, c.lasts, began})
		if _, ok := errors.AsType[*github.RateLimitError](err); ok && c.wait > time.Minute {
			// go-github remembers the limit and answers itself.
			_, _, err = gh.Users.Get(t.Context(), "")
			wantWait(t, c.name+", asked again", err, answered{c.wait, c.lasts, began})
		}

		app := must(ghinstallation.NewAppsTransport(refusals{http.DefaultTransport, func() {}}, 77, pemKey()))
		app.BaseURL = server.URL
		began = time.Now()
		_, err = ghinstallation.NewFromAppsTransport(app, 5).Token(t.Context())
		wantWait(t, c.name+", for the App's token", err, answered{c.wait, c.lasts, began})
	}
	wantWait(t, "nothing", nil, answered{})
	wantWait(t, "no answer", context.DeadlineExceeded, answered{})
}

// answered is what a request should lead to.
type answered struct {
	wait  time.Duration
	lasts bool
	sent  time.Time
}

// wantWait allows for GitHub's resolution of a second, and for the time since the request was sent.
func wantWait(t *testing.T, name string, err error, want answered) {
	t.Helper()
	got, limited := RetryAfter(err)
	least := want.wait - time.Since(want.sent) - time.Second
	if limited != (want.wait > 0) || limited && (got <= 0 || got > want.wait || got < least) {
		t.Errorf("%s: %v: wait %s, %t, want %s", name, err, got, limited, want.wait)
	}
	if Permanent(err) != want.lasts {
		t.Errorf("%s: %v: lasting %t, want %t", name, err, Permanent(err), want.lasts)
	}
}
