package github

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/githubfake"
)

// All pages are read. An address of two members identifies neither.
func TestVerifiedMembers(t *testing.T) {
	t.Parallel()
	permissions := maps.Clone(Permissions())
	permissions["members"] = "read"
	for name, w := range map[string]*world{
		"token": withToken(t), "app": newApp(t, githubfake.Config{Permissions: permissions}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.hub.AddMember("Acme", "ann", "Ann@Acme.test", "twins@acme.test")
			for i := range 2*memberPage - 1 {
				w.hub.AddMember("acme", fmt.Sprint("m", i))
			}
			w.hub.AddMember("acme", "bob", "TWINS@acme.test", "bob@acme.test", "bob@acme.test")
			w.hub.AddMember("acme", "eve", "twins@acme.test", "eve@acme.test")
			got, err := w.forge.VerifiedMembers(t.Context(), "acme")
			want := map[string]string{
				"ann@acme.test": "ann", "bob@acme.test": "bob", "eve@acme.test": "eve", "twins@acme.test": "",
			}
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("%v, %v; want %v", got, err, want)
			}
			if n := len(w.hub.Calls("POST /graphql")); n != 3 {
				t.Errorf("%d queries", n)
			}
		})
	}
}

func TestVerifiedMembersRefused(t *testing.T) {
	t.Parallel()
	check := func(w *world, org, want string) {
		t.Helper()
		got, err := w.forge.VerifiedMembers(t.Context(), org)
		if err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", org, got, err)
		}
	}
	const noAccess = "GitHub did not let errand read the members of "
	app := withApp(t)
	app.hub.AddMember("acme", "ann", "ann@acme.test")
	check(app, "acme", noAccess+"acme") // the manifest does not ask for it
	check(app, "other", "errand's GitHub App is not installed in other.")
	token := withToken(t)
	check(token, "other", noAccess+"other")
	for i := range maxMembers + 1 {
		token.hub.AddMember("acme", fmt.Sprint("m", i), fmt.Sprint("m", i, "@acme.test"))
	}
	check(token, "acme", "acme has more than 5000 members on GitHub.")
}
