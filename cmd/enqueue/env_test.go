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
	code, out, errs := f.run("env", "show", "Acme/API")
	said := strings.Join(strings.Fields(out), " ")
	for _, want := range []string{
		"key e host mill worker mill-1 made ",
		" used 2h ago set up in 41s size 300 MiB declared by .github/errand.yml state outdated since ",
	} {
		if code != 0 || errs != "" || !strings.Contains(said, want) || strings.Contains(out, "other") {
			t.Errorf("exit %d, %q lacks %q, %s", code, said, want, errs)
		}
	}
	if _, _, errs := f.run("env", "show", "acme/none"); errs != noEnvironment+"\n" {
		t.Errorf("of a repository without an environment it says %q", errs)
	}
	if all, err := f.Store.Environments.Rebuilds(t.Context()); err != nil || all.Of("acme/api", "e").At.Before(at) {
		t.Errorf("%+v, %v", all, err)
	}
	if code, out, errs := f.run("env", "rm", "other"); code != 0 || errs != "" ||
		!strings.HasPrefix(out, "the workers remove this environment of acme/web") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	if all, err := f.Store.Environments.Rebuilds(t.Context()); err != nil ||
		!all.Of("acme/web", "other").Outdated("other") || all.Of("acme/web", "e").Outdated("e") {
		t.Errorf("%+v, %v", all, err)
	}
	if code, _, errs := f.run("env", "rm", "none"); code == 0 ||
		!strings.Contains(errs, `No live worker keeps an environment with the key "none"`) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, out, _ := f.run("env", "list", "-o", "json"); code != 0 || !strings.Contains(out, `"set_up_seconds": 41`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, _, errs := f.run("env", "rebuild", "acme"); code == 0 ||
		!strings.Contains(errs, "is not the name of a repository") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
