package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

func TestMain(m *testing.M) {
	play()
	os.Exit(m.Run())
}

// All is measured, in small; how fast it is here says nothing, but every page must see every event, and share the
// reading of it.
func TestQuick(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := door.Build(t.Context(), "../..", bin, "enqueue", "worker"); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if code := table.Run(t.Context(), []string{"-quick", "-bin", bin}, &out, &progress, parse, measure); code != 0 {
		t.Fatalf("exit %d: %s", code, progress.String())
	}
	t.Logf("\n%s", out.String())
	for _, row := range []string{
		`event to the browser, p50 .* <= 100.0 ms`, `for a page that is open +\d+\.\d KB +<= 40.0 KB`,
		`goroutines for a page that is open +[12]\.\d\d`,
		`readings of Redis for an event in a page +[01]\.\d\d +<= 1\.10`,
		`taken in time while pages are open .* >= 0.98`,
		`RSS that the front door has .* <= \d+ MB +PASS`,
		`first byte of a list: the newest tasks, p50 .* <= 50.0 ms`,
		`first byte of a list: a text that is in none, p50 .* <= 50.0 ms`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("the table has no row like %s", row)
		}
	}
}
