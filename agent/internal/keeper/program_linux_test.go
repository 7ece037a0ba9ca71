package keeper_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// write makes a program. A child forked meanwhile would hold the file open for writing, and it could not be executed.
func write(t *testing.T, path, content string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// echo runs a command under a keeper and returns its output.
func echo(t *testing.T, p *keeper.Program) string {
	t.Helper()
	run, err := p.Start(t.Context(), keeper.Order{Path: "/bin/echo", Args: []string{"echo", "hello"}, Dir: "/"},
		keeper.Sandbox{})
	if err != nil {
		return err.Error()
	}
	out, _ := io.ReadAll(run.Stdout)
	<-run.Done()
	return string(out)
}

// A file that is not errand-keeper of this version is refused, and used as soon as it is the right one. After that it
// does not matter what happens to the file.
func TestProgram(t *testing.T) {
	t.Parallel()
	p := keeper.Program{Path: filepath.Join(t.TempDir(), keeper.Name)}
	for _, c := range []struct{ content, problem string }{ // or the path of the content
		{"", "no such file"},
		{"not a program", "exec format error"},
		{"/bin/echo", `it has version "-version"`},
		{"/bin/false", "exit status 1"},
	} {
		if program, err := os.ReadFile(c.content); err == nil {
			c.content = string(program)
		}
		if c.content != "" {
			write(t, p.Path, c.content)
		}
		name, unavailable := p.Name(t.Context())
		if unavailable == nil || name != "" || !strings.Contains(unavailable.Problem, c.problem) ||
			!strings.Contains(unavailable.Remedy, "install errand-keeper") {
			t.Errorf("%.20q: %q, %v", c.content, name, unavailable)
		}
		if got := echo(t, &p); !strings.Contains(got, c.problem) {
			t.Errorf("%.20q: %s", c.content, got)
		}
	}
	if err := errors.Join(os.Remove(p.Path), agenttest.Build(t.Context(), filepath.Dir(p.Path), "cmd/errand-keeper")); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { return nil },
		func() error { return os.Chmod(p.Path, 0o111) },
		func() error { return os.Remove(p.Path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if name, unavailable := p.Name(t.Context()); name != p.Path || unavailable != nil {
			t.Errorf("%q, %v", name, unavailable)
		}
		if got := echo(t, &p); got != "hello\n" {
			t.Error(got)
		}
	}
}

// Without a file beside it, a program is its own keeper.
func TestOwnProgram(t *testing.T) {
	t.Parallel()
	var p keeper.Program
	if name, unavailable := p.Name(t.Context()); name != "" || unavailable != nil {
		t.Errorf("%q, %v", name, unavailable)
	}
	if got := echo(t, &p); got != "hello\n" {
		t.Error(got)
	}
}

// There is a process of errand-keeper for each run, so it should stay small.
func TestImports(t *testing.T) {
	t.Parallel()
	out,
		err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/errand-fleet/errand/agent/cmd/"+keeper.Name).Output()
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Fields(string(out))
	for _, large := range []string{"net", "crypto/sha256", "regexp", "log/slog", "text/template"} {
		if slices.Contains(list, large) {
			t.Errorf("%s imports %s", keeper.Name, large)
		}
	}
	if len(list) > 90 {
		t.Errorf("%s has %d packages", keeper.Name, len(list))
	}
}
