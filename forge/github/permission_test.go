package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

const collaborator = "GET /repos/{o}/{r}/collaborators/{u}/permission"

func TestPermission(t *testing.T) {
	both(t, func(w *world) {
		for login, want := range map[string]forge.Permission{
			"ann": forge.PermissionAdmin, "ben": forge.PermissionWrite, "cleo": forge.PermissionRead,
			"dan": forge.PermissionNone,
		} {
			w.hub.SetPermission(repo, login, string(want))
			p, err := w.forge.Permission(w.Context(), repo, login)
			if p != want || err != nil || p.CanWrite() != (login == "ann" || login == "ben") {
				w.Errorf("%s: %s %v, want %s", login, p, err, want)
			}
		}
		calls := len(w.hub.Calls(collaborator))
		id, err := w.forge.AccountID(w.Context(), repo, "ann")
		if address := must(w.forge.Address(w.Context(), repo, "ann")); err != nil ||
			!strings.Contains(address, fmt.Sprintf("<%d+ann@", id)) || len(w.hub.Calls(collaborator)) != calls {
			w.Errorf("account %d of %s, %v", id, address, err)
		}
		// An account that GitHub does not know, and strings that are no logins.
		w.hub.Fail(collaborator, githubfake.Failure{Status: 404})
		asked := len(w.hub.Calls(collaborator)) + 1
		for _, login := range []string{"ghost", "", ".", "..", "ann/..", "ann?x=", "../../../user"} {
			if p, err := w.forge.Permission(w.Context(), repo, login); p != forge.PermissionNone ||
				err != nil && (login != "ghost" || !errors.Is(err, forge.ErrNotFound)) {
				w.Errorf("%q: %s %v", login, p, err)
			}
		}
		if n := len(w.hub.Calls(collaborator)); n != asked {
			w.Errorf("GitHub was asked %d times, want %d", n, asked)
		}
	})
}

// An account that lost its access is refused soon after.
func TestPermissionExpires(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	w := withToken(t, func(c *Config) { c.Now = func() time.Time { return now } })
	name := repo
	ask := func(want forge.Permission, calls int) {
		t.Helper()
		// Names and logins are not case-sensitive.
		name = map[string]string{repo: "Acme/API", "Acme/API": repo}[name]
		p, err := w.forge.Permission(t.Context(), name, "ben")
		if n := len(w.hub.Calls(collaborator)); p != want || err != nil || n != calls {
			t.Errorf("%s %v after %d calls, want %s after %d", p, err, n, want, calls)
		}
	}
	w.hub.SetPermission(repo, "ben", "write")
	ask(forge.PermissionWrite, 1)
	w.hub.SetPermission(repo, "ben", "none")
	ask(forge.PermissionWrite, 1)
	now = now.Add(RecentLife)
	ask(forge.PermissionNone, 2)
}

// What GitHub says counts from the question on, however long the answer takes.
func TestRecentCountsFromTheQuestion(t *testing.T) {
	t.Parallel()
	now, asked := time.Unix(1_790_000_000, 0), 0
	c := Recent[int](func() time.Time { return now })
	for _, want := range []int{1, 1, 2} {
		if got, err := c.Get(t.Context(), "k", func(context.Context) (int, error) {
			now = now.Add(RecentLife - 5*time.Second)
			asked++
			return asked, nil
		}); got != want || err != nil {
			t.Errorf("%d %v, want %d", got, err, want)
		}
		now = now.Add(3 * time.Second)
	}
}

// An account about which GitHub does not answer may do nothing.
func TestPermissionFailsClosed(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	name := repo
	w.hub.SetPermission(repo, "ben", "write")
	for _, c := range []struct {
		name string
		fail githubfake.Failure
		last bool // an *forge.RefusedError
		wait bool // an *forge.LimitError
	}{
		{"broken", githubfake.Failure{Status: 502}, false, false},
		{"cut", githubfake.Failure{Times: -1}, false, false},
		{"not for us to ask", githubfake.Failure{
			Status: 403, Body: `{"message":"Must have push access to view collaborator permission."}`,
		}, true, false},
		{"limited", githubfake.Failure{Status: 429, Header: http.Header{"Retry-After": {"60"}}}, false, true},
	} {
		lift := w.hub.Fail(collaborator, c.fail)
		p, err := w.forge.Permission(t.Context(), name, "ben")
		lift()
		_, last := errors.AsType[*forge.RefusedError](err)
		_, wait := errors.AsType[*forge.LimitError](err)
		if p != forge.PermissionNone || err == nil || last != c.last || wait != c.wait {
			t.Errorf("%s: %s %v", c.name, p, err)
		}
	}
	if p, err := w.forge.Permission(t.Context(), name, "ben"); p != forge.PermissionWrite || err != nil {
		t.Errorf("in the end: %s %v", p, err)
	}
}

// Whether a repository is private is asked again after a while. What errand cannot see is not public.
func TestPrivate(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	w := withToken(t, func(c *Config) { c.Now = func() time.Time { return now } })
	const get = "GET /repos/{o}/{r}"
	ask := func(want bool, calls int) {
		t.Helper()
		private, err := w.forge.Private(t.Context(), repo)
		if n := len(w.hub.Calls(get)); private != want || err != nil || n != calls {
			t.Errorf("%t %v after %d calls, want %t after %d", private, err, n, want, calls)
		}
	}
	ask(true, 1)
	w.repo.SetPrivate(false)
	ask(true, 1)
	now = now.Add(RecentLife)
	ask(false, 2)
	if _, err := w.forge.Private(t.Context(), "acme/none"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	now = now.Add(RecentLife)
	lift := w.hub.Fail(get, githubfake.Failure{Status: 502})
	if _, err := w.forge.Private(t.Context(), repo); err == nil || errors.Is(err, forge.ErrNotFound) {
		t.Errorf("while GitHub fails: %v", err)
	}
	lift()
	ask(false, len(w.hub.Calls(get))+1)
}

// A repository that GitHub does not know is told from one that errand may not read at the moment.
func TestUnknownRepository(t *testing.T) {
	both(t, func(w *world) {
		if _, err := w.forge.Private(w.Context(), "acme/none"); !errors.Is(err, forge.ErrNotFound) {
			w.Errorf("an unknown one: %v", err)
		}
	})
}
