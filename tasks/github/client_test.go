package github

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const (
	tokens       = "POST /app/installations/{id}/access_tokens"
	installation = "GET /repos/{o}/{r}/installation"
)

func TestCredentialOfToken(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	user, password, err := w.src.Credential(t.Context(), repo)
	if user != "x-access-token" || password != "ghp_test" || err != nil || len(w.hub.Calls("")) != 0 {
		t.Errorf("%s %s %v, %d calls", user, password, err, len(w.hub.Calls("")))
	}
}

func TestCredentialOfApp(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	soon, _ := json.Marshal(map[string]any{"token": "ghs_old", "expires_at": time.Now().Add(30 * time.Second)})
	w.hub.Fail(tokens, githubfake.Failure{Status: 201, Body: string(soon)})
	get := func() string {
		t.Helper()
		user, password, err := w.src.Credential(t.Context(), repo)
		if err != nil || user != "x-access-token" {
			t.Fatal(user, err)
		}
		return password
	}
	if got := get(); got != "ghs_old" {
		t.Errorf("got %s", got)
	}
	// It has less than a minute left, so there is a new one, which then serves.
	fresh := get()
	if again := get(); fresh == "ghs_old" || again != fresh {
		t.Errorf("got %s, then %s", fresh, again)
	}
	made := w.hub.Calls(tokens)
	if len(made) != 2 || len(w.hub.Calls(installation)) != 1 {
		t.Errorf("%d tokens made, looked for the installation %d times", len(made), len(w.hub.Calls(installation)))
	}
	var asked struct{ Repositories []string }
	if err := json.Unmarshal(made[1].Body, &asked); err != nil || len(asked.Repositories) != 1 || asked.Repositories[0] != "api" {
		t.Errorf("asked for %s, want the repository alone", made[1].Body)
	}
}

func TestCredentialErrors(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.hub.Fail(installation, githubfake.Failure{Status: 404})
	_, _, err := w.src.Credential(t.Context(), repo)
	wantInput(t, err, "did not let errand get a credential for acme/api")
	w.hub.Fail(installation, githubfake.Failure{Status: 502})
	if _, _, err = w.src.Credential(t.Context(), repo); err == nil || errors.As(err, new(*tasks.InputError)) {
		t.Errorf("got %v", err)
	}
	// An installation that is gone may have been made anew.
	w.hub.Fail(tokens, githubfake.Failure{Status: 404})
	_, _, err = w.src.Credential(t.Context(), repo)
	wantInput(t, err, "did not let errand")
	before := len(w.hub.Calls(installation))
	if _, _, err = w.src.Credential(t.Context(), repo); err != nil || len(w.hub.Calls(installation)) != before+1 {
		t.Errorf("got %v, looked %d times", err, len(w.hub.Calls(installation))-before)
	}
}

// Run with -race: ghinstallation writes to what several of its transports could share.
func TestClientsAreShared(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	must(w.hub.CreateRepo("acme", "web", map[string]string{"a": "b"}))
	task := w.task(w.open(), 0)
	var wg sync.WaitGroup
	for range 4 {
		for _, name := range []string{repo, "acme/web"} {
			wg.Go(func() {
				if _, _, err := w.src.Credential(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if _, err := w.src.Brief(t.Context(), task, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := len(w.hub.Calls(tokens))
	if err := brief(w, task); err != nil || len(w.hub.Calls(tokens)) != made {
		t.Errorf("%v, %d tokens more", err, len(w.hub.Calls(tokens))-made)
	}
	o := must(originOf(task))
	if a, b := must(w.src.clients.of(t.Context(), o)), must(w.src.clients.of(t.Context(), o)); a != b {
		t.Error("two clients for one installation: they do not know of each other's rate limits")
	}
}

// A webhook of the repository brings no installation.
func TestInstallationIsFound(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	task := w.task(w.open(), 0)
	task.Origin = []byte(strings.Replace(string(task.Origin), `"installation":5,`, "", 1))
	if o := must(originOf(task)); o.Installation != 0 {
		t.Fatal(o)
	}
	if err := brief(w, task); err != nil {
		t.Error(err)
	}
}

func TestLoginIsAskedOnce(t *testing.T) {
	both(t, func(w *world) {
		route, want := "GET /user", "errand"
		if w.src.cfg.AppID != 0 {
			route, want = "GET /app", "errand[bot]"
		}
		w.hub.Fail(route, githubfake.Failure{Status: 200, Body: "{}"})
		if got, err := w.src.clients.me(w.Context()); err == nil {
			w.Errorf("nobody is %q", got)
		}
		for range 2 {
			if got, err := w.src.clients.me(w.Context()); got != want || err != nil {
				w.Errorf("%q %v, want %q", got, err, want)
			}
		}
		if n := len(w.hub.Calls(route)); n != 2 {
			w.Errorf("asked %d times", n)
		}
	})
}

func TestRedirects(t *testing.T) {
	both(t, func(w *world) {
		task := w.task(w.open(), 0)
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			w.Errorf("another host got %s with %q", r.URL, r.Header.Get("Authorization"))
		}))
		w.Cleanup(other.Close)
		const pull = "GET /repos/{o}/{r}/pulls/{n}"
		w.hub.Fail(pull, githubfake.Failure{Status: 302, Header: http.Header{"Location": {other.URL + "/x"}}})
		if err := brief(w, task); err == nil || !strings.Contains(err.Error(), "redirects") {
			w.Errorf("got %v", err)
		}
		// A repository that was renamed redirects to its new place.
		w.hub.Fail(pull, githubfake.Failure{Status: 301, Header: http.Header{"Location": {w.hub.APIURL() + "repos/acme/api/pulls/1"}}})
		if err := brief(w, task); err != nil {
			w.Error(err)
		}
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: attempt, time.Hour: attempt, time.Second: time.Second} {
		w := withToken(t, func(c *Config) { c.HTTP.Timeout = given })
		if got := w.src.clients.own.Client().Timeout; got != want {
			t.Errorf("given %s: %s, want %s", given, got, want)
		}
	}
	if attempt > 10*time.Second {
		t.Errorf("an attempt lasts up to %s", attempt)
	}
	w := withApp(t, func(c *Config) { c.HTTP.Timeout = 50 * time.Millisecond })
	task := w.task(w.open(), 0)
	fresh := w.source(func(c *Config) { *c = w.src.cfg })
	never := make(chan struct{})
	defer close(never)
	w.hub.Fail(tokens, githubfake.Failure{Times: -1, Hold: never, Status: 500})
	if _, err := fresh.Brief(t.Context(), task, ""); err == nil {
		t.Error("a brief without a token")
	}
	if _, _, err := fresh.Credential(t.Context(), repo); err == nil {
		t.Error("a credential without a token")
	}
}

// ghinstallation does not close the answer that refuses a token; we do. Here there is only one connection.
func TestRefusedTokenFreesConnection(t *testing.T) {
	t.Parallel()
	w := withApp(t, func(c *Config) { c.HTTP.Transport.(*http.Transport).MaxConnsPerHost = 1 })
	task := w.task(w.open(), 0)
	refuse := func() { w.hub.Fail(tokens, githubfake.Failure{Status: 500, Body: strings.Repeat("x", 1<<16)}) }
	refuse()
	if err := brief(w, task); err == nil {
		t.Error("a brief without a token")
	}
	refuse()
	if _, _, err := w.src.Credential(t.Context(), repo); err == nil {
		t.Error("a credential without a token")
	}
	if _, _, err := w.src.Credential(t.Context(), repo); err != nil {
		t.Error(err)
	}
	if err := brief(w, task); err != nil {
		t.Error(err)
	}
}

// The log and the errors hold nothing that opens GitHub.
func TestNoSecretsInErrors(t *testing.T) {
	both(t, func(w *world) {
		task := w.task(w.open(), 0)
		w.hub.Fail("GET /repos/{o}/{r}/pulls/{n}", githubfake.Failure{Times: -1})
		err := brief(w, task)
		if err == nil {
			w.Fatal("no error")
		}
		for _, s := range []string{"ghp_", "ghs_", secret} {
			if strings.Contains(err.Error()+w.logs.String(), s) {
				w.Errorf("%q is in %v or in the log:\n%s", s, err, w.logs)
			}
		}
	})
}
