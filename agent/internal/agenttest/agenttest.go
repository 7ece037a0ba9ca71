// Package agenttest has what the tests of agent and of its internal packages share.
package agenttest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// ShortTemp makes a directory whose path is short enough for runs.
func ShortTemp(t *testing.T) string { return temporary(t, "") }

// Memory makes such a directory in memory, for very many files.
func Memory(t testing.TB) string { return temporary(t, "/dev/shm") }

func temporary(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "at") //nolint:usetesting // t.TempDir holds the test's name, which is too long for a run's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Alive is a FIFO that every process of a run holds open.
type Alive struct {
	Path string
	f    *os.File // ends when the last process is dead
}

// NewAlive makes the FIFO "alive" in dir.
func NewAlive(t *testing.T, dir string) Alive {
	t.Helper()
	path := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// Without waiting for a writer, so that the run can open its end at any time.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return Alive{path, f}
}

// Gone fails the test if a process that held the FIFO is still alive: reading would then not end but block, which on a
// non-blocking descriptor is EAGAIN.
func (a Alive) Gone(t *testing.T) {
	t.Helper()
	_ = a.f.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, a.f); err != nil {
		t.Errorf("a process of the run is alive: %v", err)
	}
}

// Build builds programs of package agent into dir.
func Build(ctx context.Context, dir string, programs ...string) error {
	args := []string{"build", "-o", dir + "/"}
	for _, program := range programs {
		args = append(args, "github.com/errand-fleet/errand/agent/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", programs, err, out)
	}
	return nil
}

// Leader is a shell under a keeper.
type Leader struct {
	*keeper.Process
	Alive
	Out *bufio.Reader
}

// prelude holds $ALIVE open and defines nap, which sleeps forever without a child process and looks at traps often: a
// shell may miss a signal that comes just before it waits.
const prelude = `exec 9>"$ALIVE" 8<> <(:); nap() { while :; do read -t 0.1 -u 8; done; }; `

// program of all keepers.
var program keeper.Program

// Lead starts a script and returns when it has printed "up". $ALIVE is held open by everything that the script starts.
func Lead(t *testing.T, script string) Leader {
	t.Helper()
	alive := NewAlive(t, t.TempDir())
	p, err := program.Start(t.Context(), keeper.Order{
		Path: "/bin/bash", Args: []string{"bash", "-c", prelude + script},
		Env: []string{"PATH=" + os.Getenv("PATH"), "ALIVE=" + alive.Path}, Dir: "/", OrphanGrace: time.Second,
	}, keeper.Sandbox{})
	if err != nil {
		t.Fatal(err)
	}
	l := Leader{p, alive, bufio.NewReader(p.Stdout)}
	t.Cleanup(func() {
		l.Term(0)
		<-l.Done()
	})
	l.Expect(t, "up")
	return l
}

// Expect reads a line of the script.
func (l Leader) Expect(t *testing.T, want string) {
	t.Helper()
	if got, err := l.Out.ReadString('\n'); strings.TrimSpace(got) != want {
		t.Fatalf("the leader said %q, %v; want %q", got, err, want)
	}
}

// Ended waits for the keeper to exit and checks that what it reports is true.
func (l Leader) Ended(t *testing.T) keeper.Exit {
	t.Helper()
	<-l.Done()
	if l.Err != nil || l.Exit.Stuck != 0 {
		t.Errorf("exit = %+v, %v", l.Exit, l.Err)
	}
	l.Gone(t)
	if _, err := io.Copy(io.Discard, l.Out); err != nil {
		t.Errorf("read the rest: %v", err)
	}
	return l.Exit
}
