package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadSecrets(t *testing.T) {
	t.Parallel()
	getenv := func(name string) string { return map[string]string{"A": "one"}[name] }
	readFile := func(name string) ([]byte, error) {
		if name != "/b" {
			return nil, os.ErrNotExist
		}
		return []byte("two\n"), nil
	}
	r := Repository{Secrets: map[string]RepositorySecret{
		"ONE": {From: "env:A"}, "TWO": {From: "file:/b"}, "OP": {From: "command:printf a%s b"},
	}}
	read := func(run func(string) ([]byte, error)) (map[string]string, error) {
		err := r.ReadSecrets(getenv, readFile, run)
		got := map[string]string{}
		for name, s := range r.Secrets {
			if s.Value != "" {
				got[name] = s.Value.Reveal()
			}
		}
		return got, err
	}
	if got, err := read(nil); err != nil || !maps.Equal(got, map[string]string{"ONE": "one", "TWO": "two"}) {
		t.Error(got, err)
	}
	if got, err := read(runSecretCommand(t)); err != nil || got["OP"] != "ab" {
		t.Error(got, err)
	}
	r.Secrets["THREE"], r.Secrets["FOUR"] = RepositorySecret{From: "env:B"}, RepositorySecret{From: "file:/c"}
	got, err := read(nil)
	if len(got) != 3 || !errors.Is(err, os.ErrNotExist) ||
		!strings.Contains(err.Error(), "read secret THREE: env:B gives no text") {
		t.Error(got, err)
	}
}

// A command that prints a secret is bounded, leaves no process, and shows nothing of its output.
func TestSecretCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct{ command, want string }{
		"none": {"/nowhere/op read", "no such file"},
		"fails": {
			script("fails", "echo hunter2; echo hunter2 >&2; exit 3"),
			"exit status 3; run the command as the worker's user",
		},
		"endless": {script("endless", "exec yes hunter2"), "more than 64 KiB"},
		"empty":   {"true", "gives no text"},
	} {
		r := Repository{Secrets: map[string]RepositorySecret{"X": {From: "command:" + c.command}}}
		err := r.ReadSecrets(os.Getenv, os.ReadFile, runSecretCommand(t))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "read secret X: ") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	out, err := RunSecretCommand(t.Context(), script("leaves",
		"sleep 1000 >/dev/null 9>"+alive+" & echo \"$1-$2-$#\"; cat <"+alive+" >/dev/null & : ")+" a  $HOME", nil)
	if err != nil || string(out) != "a-$HOME-2\n" {
		t.Errorf("%q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready := filepath.Join(dir, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(ready) // returns when the command runs
		cancel()
	}()
	if _, err := RunSecretCommand(ctx, script("waits", ": >"+ready+"; exec sleep 1000"), nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a cancelled command: %v", err)
	}
}

// A command that prints a secret has the worker's environment without errand's own secrets.
func TestSecretCommandEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "hunter2")
	t.Setenv("REDIS_URL", "redis://:hunter2@h")
	t.Setenv("TEAM_KEY", "hunter2")
	t.Setenv("NPM", "hunter2")
	t.Setenv("VAULT_TOKEN", "for the command")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "for the command")
	var p Problems
	var c Config
	c.Routing, _ = parseRouting(&p, "f",
		[]byte(`credentials: [{name: a, api_key: "{{env \"TEAM_KEY\"}}"}, {name: b, token_command: env}]`+
			"\nrepositories: {a/b: {secrets: {ONE: env:NPM}}}"))
	out, err := RunSecretCommand(t.Context(), "env", c.SecretVariables())
	if err != nil || len(p) > 0 || bytes.Contains(out, []byte("hunter2")) ||
		bytes.Count(out, []byte("for the command")) != 2 || !bytes.Contains(out, []byte("PATH=")) {
		t.Errorf("%v, %v\n%s", err, p, out)
	}
}

func runSecretCommand(t *testing.T) func(string) ([]byte, error) {
	return func(command string) ([]byte, error) { return RunSecretCommand(t.Context(), command, nil) }
}

func TestSecretForms(t *testing.T) {
	t.Parallel()
	var p Problems
	r, _ := parseRouting(&p, "errand.yaml",
		[]byte("repositories:\n  a/b:\n    secrets:\n      ONE: env:X\n      TWO: {from: command:op read x, expose: agent}\n"))
	if got := r.Repositories["a/b"].Secrets; len(p) > 0 || got["ONE"].From != "env:X" ||
		got["TWO"] != (RepositorySecret{From: "command:op read x", Expose: ExposeAgent}) {
		t.Errorf("%+v, %v", got, p)
	}
	for text, want := range map[string]string{
		"{from: env:X, exposed: agent}":    `knows no key "exposed"`,
		"{from: env:X, expose: everybody}": "can be exposed to `agent` only",
		"{expose: agent}":                  "does not say where its value is",
		"'command: '":                      "does not say where its value is",
		"[hunter2]":                        "does not have the right form",
	} {
		p = nil
		parseRouting(&p, "errand.yaml", []byte("repositories:\n  a/b:\n    secrets:\n      ONE: "+text+"\n"))
		if said := fmt.Sprint(p); !strings.Contains(said, want) || strings.Contains(said, "hunter2") {
			t.Errorf("%s: %s", text, said)
		}
	}
}
