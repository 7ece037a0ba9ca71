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

	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const secondaryDocs = `"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"`

// shapes are the answers that GitHub gives to say no, and what they mean. wait is 0 where it is no rate limit.
var shapes = []struct {
	name   string
	status int
	header map[string]string
	body   string
	wait   time.Duration
	lasts  bool
}{
	{"primary", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+1800"}, `{}`, 30 * time.Minute, false},
	{"primary without reset", 403, map[string]string{"X-RateLimit-Remaining": "0"}, `{}`, time.Minute, false},
	{"primary, over by now", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "-5"}, `{}`, time.Second, false},
	{"primary as 429", 429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "+1800"}, `{}`, 30 * time.Minute, false},
	{"secondary", 403, map[string]string{"Retry-After": "120"}, `{` + secondaryDocs + `}`, 2 * time.Minute, false},
	{"secondary without a time", 403, nil, `{` + secondaryDocs + `}`, time.Minute, false},
	{"secondary by its text", 403, nil, `{"message":"You have exceeded a secondary rate limit."}`, time.Minute, false},
	{"secondary by its header", 403, map[string]string{"Retry-After": "120"}, `{"message":"Slow down."}`, 2 * time.Minute, false},
	{"secondary as 429", 429, map[string]string{"Retry-After": "120"}, `{` + secondaryDocs + `}`, 2 * time.Minute, false},
	// The hour's own limit is not used up, so its reset says nothing.
	{"secondary as 429, by the hour", 429, map[string]string{"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": "+1800"}, `{}`, time.Minute, false},
	{"bare 429", 429, nil, `Too many requests`, time.Minute, false},
	{"at once", 429, map[string]string{"Retry-After": "0"}, `{}`, time.Second, false},
	{"not allowed", 403, map[string]string{"X-RateLimit-Remaining": "4000", "X-RateLimit-Reset": "+1800"}, `{"message":"Resource not accessible by integration"}`, 0, true},
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
		_, _, err := gh.Users.Get(t.Context(), "")
		wantWait(t, c.name, err, c.wait, c.lasts)
		if _, ok := errors.AsType[*github.RateLimitError](err); ok && c.wait > time.Minute {
			// go-github keeps the limit in mind and answers by itself.
			_, _, err = gh.Users.Get(t.Context(), "")
			wantWait(t, c.name+", asked again", err, c.wait, c.lasts)
		}

		app := must(ghinstallation.NewAppsTransport(tokenRefusals{http.DefaultTransport}, 77, pemKey()))
		app.BaseURL = server.URL
		_, err = ghinstallation.NewFromAppsTransport(app, 5).Token(t.Context())
		wantWait(t, c.name+", for the App's token", err, c.wait, c.lasts)
	}
	wantWait(t, "nothing", nil, 0, false)
	wantWait(t, "no answer", context.DeadlineExceeded, 0, false)
}

// wantWait allows for the second in which GitHub tells times, and for a slow machine.
func wantWait(t *testing.T, name string, err error, want time.Duration, lasts bool) {
	t.Helper()
	got, limited := retryAfter(err)
	if limited != (want > 0) || limited && (got <= 0 || got > want || got < want-20*time.Second) {
		t.Errorf("%s: %v: wait %s, %t, want %s", name, err, got, limited, want)
	}
	if lasting(err) != lasts {
		t.Errorf("%s: %v: lasting %t, want %t", name, err, lasting(err), lasts)
	}
}

// What GitHub's limits hold up is said once in the end, and looked for again before a task is done twice: by whichever process, for whichever
// limit.
func TestLimitsHoldUpTheFinalMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f    githubfake.Failure
		wait time.Duration
	}{
		"Retry-After":            {githubfake.Failure{Status: 429, Header: http.Header{"Retry-After": {"120"}}}, 2 * time.Minute},
		"secondary, Retry-After": {githubfake.Failure{Status: 403, Header: http.Header{"Retry-After": {"120"}}, Body: `{` + secondaryDocs + `}`}, 2 * time.Minute},
		"secondary":              {githubfake.Failure{Status: 403, Body: `{"message":"You have exceeded a secondary rate limit."}`}, time.Minute},
		"reset":                  {githubfake.Failure{Status: 403, Header: http.Header{"X-Ratelimit-Remaining": {"0"}}}, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(w *world) {
				f := c.f
				if name == "reset" { // now: this runs long after the test began
					f.Header = f.Header.Clone()
					f.Header.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(c.wait).Unix(), 10))
				}
				n, talk, _ := w.talk()
				for _, task := range []tasks.Task{talk, w.task(n, 0)} {
					w.src = w.again() // go-github remembers a limit, and asks nothing until it is over
					held := func(what string, err error) {
						w.Helper()
						e, ok := errors.AsType[*tasks.ErrLater](err)
						if !ok || time.Until(e.At) > c.wait || time.Until(e.At) < c.wait-30*time.Second {
							w.Errorf("%s: %s: %v", task.Kind, what, err)
						}
						w.src = w.again()
					}
					before := len(w.hub.Comments(repo, n))
					final := func() (*tasks.Ending, error) { return w.src.Final(w.Context(), task, time.Time{}) }
					w.hub.Fail(createComment, f)
					held("post", w.report(task).Close(w.Context(), answered("Because.")))
					if e, err := final(); e != nil || err != nil {
						w.Errorf("%s: found %+v, %v", task.Kind, e, err)
					}
					w.close(task, answered("Because."))
					w.hub.Fail(listComments, f)
					held("post again", w.report(task).Close(w.Context(), answered("Because.")))
					w.hub.Fail(listComments, f)
					_, err := final()
					held("look", err)
					if e, err := final(); err != nil || e == nil || e.Kind != tasks.Answered || !e.At.Equal(ended) {
						w.Errorf("%s: found %+v, %v", task.Kind, e, err)
					}
					w.close(task, answered("Because."))
					if got := len(w.hub.Comments(repo, n)) - before; got != 1 {
						w.Errorf("%s: %d comments", task.Kind, got)
					}
				}
			})
		})
	}
}
