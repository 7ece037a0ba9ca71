// Package redisclock runs a real redis-server whose clock can be changed while it runs. It is for tests on Linux and
// needs a C compiler: CC, or gcc.
package redisclock

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

//go:embed clock.c.txt
var source string

// Clock is the wall clock of the processes that are started with Env.
type Clock struct {
	library string
	file    *os.File
}

// New creates a clock that is right, with its files in dir.
func New(ctx context.Context, dir string) (*Clock, error) {
	c := &Clock{library: filepath.Join(dir, "clock.so")}
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("CC"), "gcc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-x",
		"c", "-o", c.library, "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile clock: %w\n%s", err, out)
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		return nil, fmt.Errorf("create clock: %w", err)
	}
	c.file = file
	return c, c.Set(0)
}

// Env returns the environment of a process with this clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "ERRAND_CLOCK=" + c.file.Name()}
}

// Set sets the clock to the true time plus whole seconds.
func (c *Clock) Set(ahead time.Duration) error {
	seconds := binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second)))
	if _, err := c.file.WriteAt(seconds, 0); err != nil {
		return fmt.Errorf("set clock: %w", err)
	}
	return nil
}

// ForTest starts a server with its own clock for one test, stops it when the test ends, and returns its URL.
func ForTest(tb testing.TB) (url string, c *Clock) {
	tb.Helper()
	c, err := New(context.Background(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return redistest.Start(tb, c.Env()...), c
}
