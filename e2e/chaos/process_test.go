package main

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestProcessIsBounced(t *testing.T) {
	t.Parallel()
	p := &process{name: "sleep", dirs: []string{"/bin"}, file: "sleep", args: []string{"60"}, logs: t.TempDir()}
	if err := p.end(syscall.SIGTERM, time.Minute); !errors.Is(err, errDead) {
		t.Errorf("before its start: %v", err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	first := p.pid()
	if err := bounce(t.Context(), p, syscall.SIGKILL, time.Minute, 0); err != nil {
		t.Fatal(err)
	}
	if p.pid() == 0 || p.pid() == first || len(p.ever()) != 2 || p.unasked() != 0 {
		t.Errorf("pid %d after %d, %v, %d ends unasked", p.pid(), first, p.ever(), p.unasked())
	}
	// One that ends by itself is found out.
	_ = syscall.Kill(p.pid(), syscall.SIGKILL)
	<-p.exited
	if p.pid() != 0 || p.unasked() != 1 {
		t.Errorf("pid %d, %d ends unasked", p.pid(), p.unasked())
	}
}

func TestProcessThatDoesNotEndIsKilled(t *testing.T) {
	dir := t.TempDir()
	p := &process{
		name: "deaf", dirs: []string{"/bin"}, file: "sh",
		args: []string{"-c", "trap '' TERM; : > ready; while :; do sleep 0.05; done"}, logs: dir,
	}
	t.Chdir(dir)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat("ready"); err == nil {
			break
		}
		pause(t.Context(), time.Millisecond)
	}
	if err := p.end(syscall.SIGTERM, 50*time.Millisecond); err == nil || p.pid() != 0 {
		t.Errorf("%v, pid %d", err, p.pid())
	}
}

func TestVersionsTakeTurns(t *testing.T) {
	t.Parallel()
	dirs := settings{bin: t.TempDir(), other: t.TempDir()}
	for _, dir := range []string{dirs.bin, dirs.other} {
		if err := os.Symlink("/bin/sleep", filepath.Join(dir, "sleep")); err != nil {
			t.Fatal(err)
		}
	}
	p := &process{name: "sleep", dirs: dirs.versions(1), file: "sleep", args: []string{"60"}, logs: t.TempDir()}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := bounce(t.Context(), p, syscall.SIGKILL, time.Minute, 0); err != nil {
			t.Fatal(err)
		}
	}
	_ = p.end(syscall.SIGKILL, time.Minute)
	starts := map[string]int{}
	if p.count(starts); starts["sleep of "+dirs.bin] != 2 || starts["sleep of "+dirs.other] != 1 {
		t.Errorf("starts: %v", starts)
	}
}
