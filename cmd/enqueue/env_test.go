package main

import (
	"strings"
	"testing"
	"time"
)

// An environment is rebuilt through a real front door.
func TestRebuildAnEnvironment(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	before := time.Now().Add(-time.Minute)
	if code, out, errs := f.run("env", "rebuild", "acme/api"); code != 0 || errs != "" ||
		!strings.HasPrefix(out, "the next run in acme/api sets up") {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	if r, err := f.Store.Rebuilds.Read(t.Context(), "acme/api"); err != nil || r.At.Before(before) {
		t.Errorf("%+v, %v", r, err)
	}
	if code, _, errs := f.run("env", "rebuild", "acme"); code == 0 ||
		!strings.Contains(errs, "is not the name of a repository") {
		t.Errorf("exit %d, %s", code, errs)
	}
}
