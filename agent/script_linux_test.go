package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
)

// script runs one in the bench's directory and looks that nothing of it is left.
func (b *bench) script(t *testing.T, ctx context.Context, line string, limit time.Duration) Scripted {
	t.Helper()
	id := unique(strings.ToLower(strings.NewReplacer("/", ".", "_", "-", " ", "-").Replace(t.Name())))
	s, err := b.Script(ctx, Script{ID: id, Dir: b.dir, Line: line, Limit: limit})
	if err != nil {
		t.Fatalf("Script: %v", err)
	}
	if left := marked(id); len(left) > 0 {
		t.Errorf("processes of the script are alive: %v", left)
	}
	return s
}

// credentials are all that a worker has and a tool must not see.
func credentials(c *Config) {
	c.Credential = Credential{APIKey: "sk-ant-the-key"}
	c.Getenv = func(name string) string {
		if strings.Contains(name, "TOKEN") || strings.Contains(name, "KEY") {
			return "sk-ant-" + name
		}
		return os.Getenv(name)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", credentials, func(c *Config) { c.TempDir = agenttest.ShortTemp(t) })
	for _, c := range []struct {
		line string
		want Scripted
	}{
		{"echo out; echo err >&2; echo out again", Scripted{Outcome: Done, Output: "out\nerr\nout again"}},
		{"echo it broke; exit 3", Scripted{Outcome: Failed, ExitCode: 3, Output: "it broke"}},
		{"kill -KILL $$", Scripted{Outcome: Failed, ExitCode: -1, Signal: "SIGKILL"}},
		{"echo sk-ant-test-secret", Scripted{Outcome: Done, Output: "[redacted]"}},
		{"pwd", Scripted{Outcome: Done, Output: b.dir}},
		{"read x; echo $?", Scripted{Outcome: Done, Output: "1"}}, // there is nobody to ask
	} {
		got := b.script(t, t.Context(), c.line, 0)
		if got.Duration = 0; got != c.want {
			t.Errorf("%q: %+v, want %+v", c.line, got, c.want)
		}
	}
	if env := b.script(t, t.Context(), "env; cat /proc/$$/cmdline | tr '\\0' ' '", 0).Output; strings.Contains(env, "sk-ant") ||
		strings.Contains(env, "TOKEN") || strings.Contains(env, "API_KEY") || strings.Contains(env, "ANTHROPIC") ||
		strings.Contains(env, "tr '") {
		t.Errorf("it could see %s", env)
	}
	if out := b.script(t, t.Context(), "seq 1 100000", 0).Output; !strings.HasSuffix(out, "\n100000") ||
		len(strings.Split(out, "\n")) != 101 {
		t.Errorf("of much output %d bytes are kept", len(out))
	}
	if left, _ := filepath.Glob(filepath.Join(b.cfg.TempDir, "er-*", scriptFile)); len(left) > 0 {
		t.Errorf("scripts are left: %v", left)
	}
}

// escapes starts what outlives its shell, ignores TERM, and holds the bench's pipe for as long as it lives.
const escapes = `trap '' TERM; exec 9>"$AGENT_TEST_ALIVE"; setsid sleep 1000 & setsid setsid sleep 1000 & echo started; `

func TestScriptLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if got := b.script(t, t.Context(), escapes, 0); got.Outcome != Done || got.Output != "started" {
		t.Errorf("a script that leaves something behind: %+v", got)
	}
	b.gone(t)
	if got := b.script(t, t.Context(), "sleep 1000", 100*time.Millisecond); got.Outcome != Limit {
		t.Errorf("a script that does not end: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun := filepath.Join(b.dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(begun)
		cancel()
	}()
	if got := b.script(t, ctx, escapes+"echo > "+begun+"; wait", 0); got.Outcome != Stopped ||
		got.Signal != "SIGKILL" {
		t.Errorf("a script that is stopped: %+v", got)
	}
	b.gone(t)
	if got := b.script(t, ctx, "echo no > "+begun, 0); got.Outcome != Stopped {
		t.Errorf("a script that comes too late: %+v", got)
	}
}

func TestScriptInSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", func(c *Config) { c.Sandbox = SandboxBwrap })
	if path, _ := b.sandbox.Path(t.Context()); path == "" {
		_, err := b.Script(t.Context(), Script{ID: unique("refused"), Dir: b.dir, Line: "true"})
		if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassConfig {
			t.Errorf("a script without the sandbox it needs: %v", err)
		}
		return
	}
	root := house(t)
	b = newBench(t, "", func(c *Config) {
		c.Sandbox, c.TempDir, c.LogDir = SandboxBwrap, filepath.Join(root, "temp"), filepath.Join(root, "state", "logs")
		c.Hidden = []string{filepath.Join(root, "state"), filepath.Join(root, "secret")}
	})
	b.dir = filepath.Join(root, "state", "clone")
	got := b.script(t, t.Context(), "ls "+root+"/secret "+root+"/state/logs "+
		root+"/temp; cat .env; echo; echo x > made && echo x > "+root+"/else/public", 0)
	if got.Outcome != Failed || !strings.Contains(got.Output, "content of state/clone/.env") ||
		strings.Contains(got.Output, "key") {
		t.Errorf("in the sandbox: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "made")); err != nil {
		t.Errorf("its own directory cannot be written: %v", err)
	}
}
