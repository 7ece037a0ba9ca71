package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// A list asks for each of its tasks whether the visitor may read the repository. A forge that hangs delays it once,
// however many repositories there are.
func TestForgeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var recovered atomic.Bool
		var asked atomic.Int64
		a := &Access{
			Grants: []Grant{{Role: policy.Viewer, People: []string{"*@acme.test"}}},
			Forge: func(ctx context.Context, _, _ string) (bool, error) {
				asked.Add(1)
				if recovered.Load() {
					return true, nil
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Minute):
				}
				return false, errors.New("no answer")
			},
		}
		ann := Identity{Name: "ann", Email: "ann@acme.test", Login: "ann"}
		v := a.visitor(ann, "test", slog.New(slog.DiscardHandler))
		left, cancel := context.WithCancel(t.Context())
		cancel()
		if role := v.In(left, "acme/api"); !role.Barred {
			t.Errorf("a visitor who has left has the role %v", role)
		}
		begun := time.Now()
		for n := range 100 {
			if role := v.In(t.Context(), fmt.Sprint("acme/api", n%5)); !role.Barred {
				t.Fatalf("the role is %v while the forge does not answer", role)
			}
		}
		if took := time.Since(begun); asked.Load() != 2 || took != askTime {
			t.Errorf("100 tasks asked the forge %d times and took %s", asked.Load()-1, took)
		}
		recovered.Store(true)
		<-time.After(errorTime)
		if role := v.In(t.Context(), "acme/api0"); role.Barred || role.Role != policy.Viewer {
			t.Errorf("the role is %v after the forge has recovered", role)
		}
	})
}

// A visitor is one of the people by a verified address or an account that is known, and never by one that is missing.
func TestVisitorIsAPerson(t *testing.T) {
	t.Parallel()
	a := &Access{People: people.People{
		{Name: "Ann", Email: "ann@acme.test", GitHub: "ann-acme"},
		{Name: "Bob", GitHub: "bob-acme"},
		{Name: "Eve", Slack: "U1"},
	}}
	for name, c := range map[string]struct {
		id            Identity
		person, login string
	}{
		"address": {Identity{Name: "x", Email: "Ann@acme.test"}, "Ann", "ann-acme"},
		"address with an account": {
			Identity{Name: "x", Email: "ann@acme.test", Login: "ann-home", ID: 1}, "Ann", "ann-home",
		},
		"address with a claim": {Identity{Name: "x", Email: "ann@acme.test", Login: "root"}, "Ann", "ann-acme"},
		"account":              {Identity{Name: "x", Login: "Bob-acme", ID: 2}, "Bob", "Bob-acme"},
		"a claim":              {Identity{Name: "x", Login: "bob-acme"}, "", "bob-acme"},
		"another's address":    {Identity{Name: "x", Email: "mallory@acme.test"}, "", ""},
		"another's account":    {Identity{Name: "x", Login: "mallory"}, "", "mallory"},
		"a name":               {Identity{Name: "Ann"}, "", ""},
	} {
		if v := a.visitor(c.id, "test", nil); v.Person != c.person || v.Login != c.login {
			t.Errorf("%s: person %q with the account %q, want %q and %q", name, v.Person, v.Login, c.person, c.login)
		}
	}
}

// A visitor has the highest of their roles, in the repositories that it is for, and none that the forge does not let
// them read.
func TestVisitorsRoles(t *testing.T) {
	t.Parallel()
	grants := []Grant{
		{Role: policy.Operator, Groups: []string{"web"}, Repositories: []string{"acme/web*"}},
		{Role: policy.User, People: []string{"ann"}, Repositories: []string{"acme/*"}},
		{Role: policy.Viewer, People: []string{"ann"}}, // less, but everywhere
		{Role: policy.Admin, People: []string{"root@acme.test", "root-acme"}},
	}
	reads := func(_ context.Context, repo, _ string) (bool, error) {
		return repo != "acme/closed" && repo != "", nil // what belongs to no repository is not asked for
	}
	roles := func(v people.Visitor) (list [5]policy.Role) {
		for i, repo := range []string{"", "acme/api", "acme/web", "acme/closed"} {
			if list[i] = v.Role; v.In == nil {
				continue
			}
			if r := v.In(t.Context(), repo); r.Barred {
				list[i] = policy.Anyone
			} else {
				list[i] = r.Role
			}
		}
		list[4] = v.Role
		return list
	}
	const none, viewer, user, operator, admin = policy.Anyone, policy.Viewer, policy.User, policy.Operator, policy.Admin
	for name, c := range map[string]struct {
		id    Identity
		forge bool
		want  [5]policy.Role // without a repository, in those of roles, and anywhere
	}{
		"people": {Identity{Name: "ann"}, false, [5]policy.Role{viewer, user, user, user, user}},
		"a group": {
			Identity{Name: "bob", Groups: []string{"db", "web"}},
			false,
			[5]policy.Role{none, none, operator, none, operator},
		},
		"both": {
			Identity{Name: "ann", Groups: []string{"web"}},
			false,
			[5]policy.Role{viewer, user, operator, user, operator},
		},
		"an address": {
			Identity{Name: "x", Email: "Root@acme.test"}, false, [5]policy.Role{admin, admin, admin, admin, admin},
		},
		"an account": {
			Identity{Name: "x", Login: "root-acme", ID: 1}, true, [5]policy.Role{admin, admin, admin, none, admin},
		},
		"an account in a claim": {Identity{Name: "x", Login: "root-acme"}, true, [5]policy.Role{}},
		"an address in a claim": {Identity{Name: "x", Login: "root@acme.test"}, false, [5]policy.Role{}},
		"a claim beside a group": {
			Identity{Name: "x", Login: "root-acme", Groups: []string{"web"}},
			false,
			[5]policy.Role{none, none, operator, none, operator},
		},
		"nobody": {Identity{Name: "eve", Groups: []string{"db"}}, true, [5]policy.Role{}},
		"who reads": {
			Identity{Name: "ann", Login: "ann-acme"}, true, [5]policy.Role{viewer, user, user, none, user},
		},
		"no account": {Identity{Name: "ann"}, true, [5]policy.Role{viewer, user, user, user, user}},
		"no forge": {
			Identity{Name: "ann", Login: "ann-acme"}, false, [5]policy.Role{viewer, user, user, user, user},
		},
		"a group's reader": {
			Identity{Name: "x", Login: "y", Groups: []string{"web"}},
			true,
			[5]policy.Role{none, none, operator, none, operator},
		},
	} {
		a := &Access{Grants: grants}
		if c.forge {
			a.Forge = reads
		}
		v := a.visitor(c.id, "test", nil)
		if got := roles(v); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if everywhere := c.want == [5]policy.Role{admin, admin, admin, admin, admin}; (v.In == nil && v.Role == admin) != everywhere {
			t.Errorf("%s: an admin everywhere: %t", name, !everywhere)
		}
	}
}
