package main

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/container"
)

// TestMain lets the test binary enter a container.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == container.Argument {
		main()
	}
	os.Exit(m.Run())
}

// A worker that takes one task is alone in its container, can write only to its directories, and starts again until it
// is retired.
func TestContainer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, made := range []string{"proc", "bin"} {
		if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	in, err := container.New(dir, "alone", filepath.Join(dir, "proc"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{
		name: "alone", dirs: []string{"/bin"}, file: "sh", logs: dir, in: in, env: append(in.Env(), "OUT="+dir),
		args: []string{"-c", `test $$ = 1 && test "$(uname -n)" = alone && test "$(readlink $OUT/proc/self)" != 1 && ` +
			`! touch $OUT/outside && touch "$HOME/inside" && exit 3`},
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	for len(p.ended()) < 3 {
		pause(t.Context(), time.Millisecond)
	}
	p.retire()
	_ = p.end(syscall.SIGKILL, time.Minute)
	started := len(p.ever())
	p.restart()
	if p.pid() != 0 || len(p.ever()) != started || p.unasked() != 0 {
		t.Errorf("after the last end: pid %d, %d and %d starts, %d ends unasked", p.pid(), started, len(p.ever()), p.unasked())
	}
	if slices.ContainsFunc(p.ended(), func(e exit) bool { return e.code != 3 }) {
		log, _ := os.ReadFile(filepath.Join(dir, "alone.log"))
		t.Errorf("%+v\n%s", p.ended(), log)
	}
}
