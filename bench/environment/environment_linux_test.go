package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/table"
)

func TestMain(m *testing.M) {
	agent.KeeperMain()
	os.Exit(m.Run())
}

// All is measured, in small; how fast it is here says nothing.
func TestQuick(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, progress bytes.Buffer
	if code := table.Run(t.Context(), []string{"-quick", "-dir", dir}, &out, &progress, parse, measure); code != 0 {
		t.Fatalf("exit %d: %s", code, progress.String())
	}
	t.Logf("\n%s", out.String())
	for _, row := range []string{
		`files of 16 MB, 5 dependencies`, `from loopback +\d+ MB/s`, `tunnel of the egress proxy +\d+ MB/s`,
		`as a part of the direct one +\d\.\d\d +>= 0.70`,
		`next one, as a part of it +0\.\d+ +<= 0.05`, `added by a kept environment +-?\d+ ms`,
		`see what is not theirs +0 +<= 0 +PASS`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("the table has no row like %s", row)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}
