package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/errand-fleet/errand/bench/table"
)

// All is measured, in small; how fast it is here says nothing, but clones have to be right.
func TestQuick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, progress bytes.Buffer
	if code := table.Run(t.Context(), []string{"-quick", "-dir", dir}, &out, &progress, parse, measure); code != 0 {
		t.Fatalf("exit %d: %s", code, progress.String())
	}
	t.Logf("\n%s", out.String())
	for _, row := range []string{
		`repository of 2000 files and 2 MB`, `first run of all.* <= 60.0 s +PASS`, `as a multiple of git clone --shared +\d\.\d\d +<= 1.20`,
		`the next head .* <= 1.00 s`, `instructions of the base branch .* <= 0.10 s`,
		`of 4 tasks at once, those that failed +0 +<= 0 +PASS`, `asked the remote .* \d+`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("the table has no row like %s", row)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
