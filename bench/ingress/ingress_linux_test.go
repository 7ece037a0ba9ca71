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

// All is measured, in small and without Node; how fast it is here says nothing, but nothing may be lost.
func TestQuick(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := door.Build(t.Context(), "../..", bin, "enqueue", "worker"); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if code := table.Run(t.Context(), []string{"-quick", "-bolt=false", "-bin", bin}, &out, &progress, parse, measure); code != 0 {
		t.Fatalf("exit %d: %s", code, progress.String())
	}
	t.Logf("\n%s", out.String())
	for _, row := range []string{
		`bare asynq +\d+ +1.00 +- `, `errand +\d+ +\d\.\d\d +- `, `of a bare handler's .* >= 0.60`,
		`half the rate .* <= 15.0 ms`,
		`until they are tasks, .* >= 0.45`, `for an event, until it is a task +\d+\.\d\d +<= 10.00`,
		`the same of bare asynq +1\.\d\d`,
		`events lost while .* +0 +<= 0 +PASS`,
		`events refused while .* +0 +<= 0 +PASS`, `lost meanwhile +0 +<= 0 +PASS`,
		`to the CLI, p50 .* <= 150 ms`, `with traces, as a multiple .* <= 1.020`, `receiver of traces +0`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("the table has no row like %s", row)
		}
	}
}
