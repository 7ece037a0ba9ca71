package main

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
)

// Environments are listed and rebuilt through a real front door.
func TestEnvironments(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if code, out, errs := f.run("env", "list"); code != 0 || out != "" ||
		errs != "No live worker keeps an environment.\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	at := time.Now().Add(-3 * time.Hour)
	w := store.Worker{ID: "mill-1", Host: "mill", Environments: []store.Environment{
		{
			ID: "e", Repo: "acme/api", Created: at, Used: at.Add(time.Hour), Seconds: 41, Size: 300 << 20,
			From: ".github/errand.yml",
		},
		{ID: "other", Repo: "acme/web", Created: at, Used: at},
	}}
	if _, err := f.Store.Workers.Beat(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	list := func(want string) {
		t.Helper()
		if code, out, errs := f.run("env", "list"); code != 0 || errs != "" ||
			!strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("exit %d, %q, %s", code, out, errs)
		}
	}
	list("acme/api mill 3h 41s 300 MiB 2h ago current")
	if code, out, errs := f.run("env", "rebuild", "acme/api"); code != 0 || errs != "" ||
		!strings.HasPrefix(out, "the next run in acme/api sets up") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	list("2h ago outdated")
	if all, err := f.Store.Environments.Rebuilds(t.Context()); err != nil || all.Of("acme/api").At.Before(at) {
		t.Errorf("%+v, %v", all, err)
	}
	if code, out, _ := f.run("env", "list", "-o", "json"); code != 0 || !strings.Contains(out, `"set_up_seconds": 41`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, _, errs := f.run("env", "rebuild", "acme"); code == 0 ||
		!strings.Contains(errs, "is not the name of a repository") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
