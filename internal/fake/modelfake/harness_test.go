package modelfake_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake/clitest"
)

// home is the directory in which one or more runs of the CLI keep their files.
type home struct {
	dir, cli, url string
}

// newHome creates a directory with a short path, because the CLI creates a Unix socket in it.
func newHome(t *testing.T, s *modelfake.Server) home {
	t.Helper()
	dir, err := os.MkdirTemp("", "mf") //nolint:usetesting // t.TempDir contains the test's name, which is too long for the CLI's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for _, sub := range []string{"work", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return home{dir: dir, cli: clitest.Find(t), url: s.URL()}
}

// command is the CLI with only PATH of this process's environment.
func (h home) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// The limit only keeps a hanging CLI from outliving the test binary.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, h.cli, append([]string{"--print"}, args...)...)
	cmd.WaitDelay = 10 * time.Second // for a tool that outlives the CLI and holds its stdout
	cmd.Dir = filepath.Join(h.dir, "work")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + h.dir,
		"CLAUDE_CONFIG_DIR=" + filepath.Join(h.dir, "c"),
		"CLAUDE_CODE_TMPDIR=" + filepath.Join(h.dir, "tmp"),
		"ANTHROPIC_BASE_URL=" + h.url,
		"ANTHROPIC_API_KEY=sk-ant-test",
		"DISABLE_AUTOUPDATER=1",
		"DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=0",
	}
	return cmd
}

// run returns the CLI's output and exit code.
func (h home) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var stderr strings.Builder
	cmd := h.command(t, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", stderr.String())
	}
	return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
}

// session is a CLI that reads user messages from stdin.
type session struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

// session starts it. A test that fails before end leaves no process behind either.
func (h home) session(t *testing.T, args ...string) session {
	t.Helper()
	cmd := h.command(t, append([]string{
		"--output-format=stream-json", "--input-format=stream-json", "--verbose",
		"--setting-sources=", "--strict-mcp-config",
	}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return session{cmd: cmd, in: in, lines: bufio.NewReader(out)}
}

func (s session) say(t *testing.T, uuid, text string) {
	t.Helper()
	line, err := json.Marshal(map[string]any{
		"type": "user", "uuid": uuid, "message": map[string]any{"role": "user", "content": text},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, string(line))
}

func (s session) write(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		t.Fatal(err)
	}
}

// until reads lines up to one that contains every part.
func (s session) until(t *testing.T, parts ...string) string {
	t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v before a line with %q", err, parts)
		}
		found := true
		for _, p := range parts {
			found = found && strings.Contains(line, p)
		}
		if found {
			return line
		}
	}
}

// end closes stdin and waits for the CLI to exit, so that nothing writes to its directory after that.
func (s session) end(t *testing.T) {
	t.Helper()
	if err := s.in.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, s.lines); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
