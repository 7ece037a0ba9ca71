// Package clitest finds the CLI for tests that run it.
package clitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Find returns the absolute path of the CLI: the one that package.json pins, in the nearest node_modules from the
// test's package upwards, otherwise the one on PATH.
func Find(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		cli, err := exec.LookPath(filepath.Join(dir, "node_modules", ".bin", "claude"))
		if err == nil {
			return cli
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	cli, err := exec.LookPath("claude")
	if err == nil {
		cli, err = filepath.Abs(cli)
	}
	if err != nil {
		tb.Fatalf("%v (make setup)", err)
	}
	return cli
}
