package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestProcessIsBounced(t *testing.T) {
	t.Parallel()
	p := &process{name: "sleep", path: "/bin/sleep", args: []string{"60"}, logs: t.TempDir()}
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
	p := &process{name: "deaf", path: "/bin/sh", args: []string{"-c", "trap '' TERM; : > ready; while :; do sleep 0.05; done"}, logs: dir}
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
