package github

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

// An account that has suspended its installation does not keep others from using the App.
func TestInstalledWithoutSuspended(t *testing.T) {
	t.Parallel()
	w := newApp(t, githubfake.Config{SuspendedID: 6})
	must(w.hub.CreateRepo("acme", "aaa", map[string]string{"main.go": "package main\n"}))
	if got, err := w.forge.Installed(t.Context()); err != nil || !slices.Equal(got, []string{"acme/aaa", repo}) {
		t.Errorf("installed on %v, %v", got, err)
	}
}
