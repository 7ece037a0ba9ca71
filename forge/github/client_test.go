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

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestCredentialOfToken(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	user, password, err := w.forge.Credential(t.Context(), repo)
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
		user, password, err := w.forge.Credential(t.Context(), repo)
		if err != nil || user != "x-access-token" {
			t.Fatal(user, err)
		}
		return password
	}
	if got := get(); got != "ghs_old" {
		t.Errorf("got %s", got)
	}
	// It expires in less than a minute, so a new one is made and then kept.
	fresh := get()
	if again := get(); fresh == "ghs_old" || again != fresh {
		t.Errorf("got %s, then %s", fresh, again)
	}
	made := w.hub.Calls(tokens)
	if len(made) != 2 || len(w.hub.Calls(installation)) != 1 {
		t.Errorf("%d tokens made, looked for the installation %d times", len(made), len(w.hub.Calls(installation)))
	}
	var asked struct{ Repositories []string }
	if err := json.Unmarshal(made[1].Body, &asked); err != nil || len(asked.Repositories) != 1 ||
		asked.Repositories[0] != "api" {
		t.Errorf("asked for %s, want the repository alone", made[1].Body)
	}
}

// An App's token for git can only read a repository that nothing may be written to, and no pull request is opened
// there.
func TestReadOnlyRepository(t *testing.T) {
	t.Parallel()
	w := withApp(t, func(c *Config) { c.ReadOnly = func(name string) bool { return name == repo } })
	if _, _, err := w.forge.Credential(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	var asked struct{ Permissions map[string]string }
	body := w.hub.Calls(tokens)[0].Body
	err := json.Unmarshal(body, &asked)
	if err != nil || len(asked.Permissions) != 1 || asked.Permissions["contents"] != "read" {
		t.Errorf("asked for %s", body)
	}
	_, err = w.forge.Publish(t.Context(), w.started().work(1))
	if _, refused := errors.AsType[*forge.RefusedError](err); !refused || len(w.hub.Pulls(repo)) > 0 {
		t.Errorf("published: %v, %+v", err, w.hub.Pulls(repo))
	}
}

func TestCredentialErrors(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	w.hub.Fail(installation, githubfake.Failure{Status: 404})
	_, _, err := w.forge.Credential(t.Context(), repo)
	wantRefused(t, err, "did not let errand get a credential for acme/api")
	w.hub.Fail(installation, githubfake.Failure{Status: 502})
	if _, _, err = w.forge.Credential(t.Context(), repo); err == nil || errors.As(err, new(*forge.RefusedError)) {
		t.Errorf("got %v", err)
	}
	// The App may have been reinstalled.
	w.hub.Fail(tokens, githubfake.Failure{Status: 404})
	_, _, err = w.forge.Credential(t.Context(), repo)
	wantRefused(t, err, "did not let errand")
	before := len(w.hub.Calls(installation))
	if _, _, err = w.forge.Credential(t.Context(), repo); err != nil || len(w.hub.Calls(installation)) != before+1 {
		t.Errorf("got %v, looked %d times", err, len(w.hub.Calls(installation))-before)
	}
}

// The App is removed and installed again, which gives the installation another number. One call notices that.
func TestReinstalled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		life         time.Duration // of tokens; 0: the fake's. A token counts as expired a minute before
		installation int64         // that the calls name
	}{
		"token revoked":               {},
		"token expired":               {life: 50 * time.Second},
		"an old event, token revoked": {installation: 5},
		"an old event, token expired": {life: 50 * time.Second, installation: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newApp(t, githubfake.Config{TokenLife: test.life})
			w.hub.SetPermission(repo, "ann", "admin")
			w.hub.SetPermission(repo, "ben", "write")
			ask := func(login string) (forge.Permission, error) {
				return w.forge.PermissionFor(t.Context(), repo, test.installation, login)
			}
			if p, err := ask("ann"); p != forge.PermissionAdmin {
				t.Fatalf("%s %v", p, err)
			}
			w.hub.Reinstall(6)
			if p, err := ask("ben"); err == nil || errors.Is(err, forge.ErrNotFound) {
				t.Errorf("%s %v, want a refusal, and not that ben does not exist", p, err)
			}
			if p, err := ask("ben"); p != forge.PermissionWrite {
				t.Errorf("%s %v", p, err)
			}
			if _, _, err := w.forge.Credential(t.Context(), repo); err != nil {
				t.Error(err)
			}
		})
	}
}

// Run with -race: ghinstallation writes to what several of its transports could share.
func TestClientsAreShared(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	must(w.hub.CreateRepo("acme", "web", map[string]string{"a": "b"}))
	w.open()
	var wg sync.WaitGroup
	for range 4 {
		for _, name := range []string{repo, "acme/web"} {
			wg.Go(func() {
				if _, _, err := w.forge.Credential(t.Context(), name); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := w.read(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	made := len(w.hub.Calls(tokens))
	if err := w.read(); err != nil || len(w.hub.Calls(tokens)) != made {
		t.Errorf("%v, %d tokens more", err, len(w.hub.Calls(tokens))-made)
	}
	if a, b := must(w.forge.Client(t.Context(), repo, 5)), must(w.forge.Client(t.Context(), repo, 0)); a != b {
		t.Error("two clients for one installation: they do not know of each other's rate limits")
	}
}

func TestLoginIsAskedOnce(t *testing.T) {
	both(t, func(w *world) {
		route, want := "GET /user", "errand"
		if w.forge.IsApp() {
			route, want = "GET /app", "errand[bot]"
		}
		w.hub.Fail(route, githubfake.Failure{Status: 200, Body: "{}"})
		if got, err := w.forge.Login(w.Context()); err == nil {
			w.Errorf("the login is %q", got)
		}
		for range 2 {
			if got, err := w.forge.Login(w.Context()); got != want || err != nil {
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
		w.open()
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			w.Errorf("another host got %s with %q", r.URL, r.Header.Get("Authorization"))
		}))
		w.Cleanup(other.Close)
		const pull = "GET /repos/{o}/{r}/pulls/{n}"
		w.hub.Fail(pull, githubfake.Failure{Status: 302, Header: http.Header{"Location": {other.URL + "/x"}}})
		if err := w.read(); err == nil || !strings.Contains(err.Error(), "redirects") {
			w.Errorf("got %v", err)
		}
		// A renamed repository redirects to its new URL.
		w.hub.Fail(pull, githubfake.Failure{
			Status: 301, Header: http.Header{"Location": {w.hub.APIURL() + "repos/acme/api/pulls/1"}},
		})
		if err := w.read(); err != nil {
			w.Error(err)
		}
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: attempt, time.Hour: attempt, time.Second: time.Second} {
		w := withToken(t, func(c *Config) { c.HTTP.Timeout = given })
		if got := w.forge.clients.own.Client().Timeout; got != want {
			t.Errorf("given %s: %s, want %s", given, got, want)
		}
	}
	if attempt > 10*time.Second {
		t.Errorf("an attempt lasts up to %s", attempt)
	}
	w := withApp(t, func(c *Config) { c.HTTP.Timeout = 50 * time.Millisecond })
	w.open()
	fresh := w.other()
	never := make(chan struct{})
	defer close(never)
	w.hub.Fail(tokens, githubfake.Failure{Times: -1, Hold: never, Status: 500})
	if _, err := fresh.PullRequest(t.Context(), repo, 1); err == nil {
		t.Error("a pull request without a token")
	}
	if _, _, err := fresh.Credential(t.Context(), repo); err == nil {
		t.Error("a credential without a token")
	}
}

// The response that refuses a token is closed, which ghinstallation does not do. Here there is only one connection.
func TestRefusedTokenFreesConnection(t *testing.T) {
	t.Parallel()
	w := withApp(t, func(c *Config) { c.HTTP.Transport.(*http.Transport).MaxConnsPerHost = 1 })
	w.open()
	refuse := func() { w.hub.Fail(tokens, githubfake.Failure{Status: 500, Body: strings.Repeat("x", 1<<16)}) }
	refuse()
	if err := w.read(); err == nil {
		t.Error("a pull request without a token")
	}
	refuse()
	if _, _, err := w.forge.Credential(t.Context(), repo); err == nil {
		t.Error("a credential without a token")
	}
	if _, _, err := w.forge.Credential(t.Context(), repo); err != nil {
		t.Error(err)
	}
	if err := w.read(); err != nil {
		t.Error(err)
	}
}

// Neither logs nor errors contain credentials.
func TestNoSecretsInErrors(t *testing.T) {
	both(t, func(w *world) {
		w.open()
		w.hub.Fail("GET /repos/{o}/{r}/pulls/{n}", githubfake.Failure{Times: -1})
		err := w.read()
		if err == nil {
			w.Fatal("no error")
		}
		for _, s := range []string{"ghp_", "ghs_"} {
			if strings.Contains(err.Error()+w.logs.String(), s) {
				w.Errorf("%q is in %v or in the log:\n%s", s, err, w.logs)
			}
		}
	})
}
