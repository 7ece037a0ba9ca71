package github

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

const collaborator = "GET /repos/{o}/{r}/collaborators/{u}/permission"

func TestMay(t *testing.T) {
	both(t, func(w *world) {
		o := must(originOf(w.task(w.open(), 0)))
		for login, want := range map[string]permission{"ann": admin, "ben": write, "cleo": read, "dan": noAccess} {
			w.hub.SetPermission(repo, login, string(want))
			p, err := w.src.may(w.Context(), o, login)
			if p != want || err != nil || p.writes() != (login == "ann" || login == "ben") {
				w.Errorf("%s: %s %v, want %s", login, p, err, want)
			}
		}
		// Somebody whom GitHub does not know, and what is no login at all.
		w.hub.Fail(collaborator, githubfake.Failure{Status: 404})
		asked := len(w.hub.Calls(collaborator)) + 1
		for _, login := range []string{"ghost", "", ".", "..", "ann/..", "ann?x=", "../../../user"} {
			if p, err := w.src.may(w.Context(), o, login); p != noAccess || err != nil {
				w.Errorf("%q: %s %v", login, p, err)
			}
		}
		if n := len(w.hub.Calls(collaborator)); n != asked {
			w.Errorf("GitHub was asked %d times, want %d", n, asked)
		}
		if err := w.src.mustWrite(w.Context(), o, "ben"); err != nil {
			w.Error(err)
		}
		wantInput(w.T, w.src.mustWrite(w.Context(), o, "cleo"), "cleo may not write to acme/api.")
	})
}

// Who was shut out a moment ago is, soon.
func TestMayIsForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	w := withToken(t, func(c *Config) { c.Now = func() time.Time { return now } })
	o := origin{Repo: repo, Number: 1}
	ask := func(want permission, calls int) {
		t.Helper()
		// Neither of them minds upper and lower case.
		o.Repo = map[string]string{repo: "Acme/API", "Acme/API": repo}[o.Repo]
		p, err := w.src.may(t.Context(), o, "ben")
		if n := len(w.hub.Calls(collaborator)); p != want || err != nil || n != calls {
			t.Errorf("%s %v after %d calls, want %s after %d", p, err, n, want, calls)
		}
	}
	w.hub.SetPermission(repo, "ben", "write")
	ask(write, 1)
	w.hub.SetPermission(repo, "ben", "none")
	ask(write, 1)
	now = now.Add(recentLife)
	ask(noAccess, 2)
	for i := range 2 * maxRecent {
		w.src.permits.put(fmt.Sprint(i), read, now)
	}
	if n := len(w.src.permits.known); n > maxRecent {
		t.Errorf("%d accounts are remembered", n)
	}
}

// Who cannot be asked about may do nothing, until the answer comes.
func TestMayFailsClosed(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	o := origin{Repo: repo, Number: 1}
	w.hub.SetPermission(repo, "ben", "write")
	for _, c := range []struct {
		name string
		fail githubfake.Failure
		last bool // an *tasks.InputError
		wait bool // an *tasks.ErrLater
	}{
		{"broken", githubfake.Failure{Status: 502}, false, false},
		{"cut", githubfake.Failure{Times: -1}, false, false},
		{"not for us to ask", githubfake.Failure{Status: 403, Body: `{"message":"Must have push access to view collaborator permission."}`}, true, false},
		{"limited", githubfake.Failure{Status: 429, Header: http.Header{"Retry-After": {"60"}}}, false, true},
	} {
		lift := w.hub.Fail(collaborator, c.fail)
		p, err := w.src.may(t.Context(), o, "ben")
		lift()
		_, last := errors.AsType[*tasks.InputError](err)
		_, wait := errors.AsType[*tasks.ErrLater](err)
		if p != noAccess || err == nil || last != c.last || wait != c.wait {
			t.Errorf("%s: %s %v", c.name, p, err)
		}
	}
	if p, err := w.src.may(t.Context(), o, "ben"); p != write || err != nil {
		t.Errorf("in the end: %s %v", p, err)
	}
}
