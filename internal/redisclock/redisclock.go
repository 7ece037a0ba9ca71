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
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

//go:embed clock.c.txt
var source string

// compiled is the library of all clocks of this process. Its file has lost its name, so that nothing is left when the
// process ends.
var compiled = sync.OnceValues(func() (*os.File, error) {
	dir, err := os.MkdirTemp("", "redisclock")
	if err != nil {
		return nil, fmt.Errorf("compile clock: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "clock.so")
	cmd := exec.CommandContext(context.Background(), cmp.Or(os.Getenv("CC"), "gcc"), "-shared", "-fPIC", "-O1", "-Wall",
		"-Werror", "-x", "c", "-o", path, "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile clock: %w\n%s", err, out)
	}
	return os.Open(path)
})

// Clock is the wall clock of the processes that are started with Env. They start while this process lives.
type Clock struct {
	library string
	file    *os.File
}

// New creates a clock that is right, with its file in dir.
func New(dir string) (*Clock, error) {
	library, err := compiled()
	if err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		return nil, fmt.Errorf("create clock: %w", err)
	}
	c := &Clock{fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), library.Fd()), file}
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
	c, err := New(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return redistest.Start(tb, c.Env()...), c
}

// AtMidday starts a server for one test on whose clock it is half past twelve (UTC) today, so that neither a day nor an
// hour ends during the test. It returns its URL and that time.
func AtMidday(tb testing.TB) (url string, midday time.Time) {
	tb.Helper()
	url, c := ForTest(tb)
	now := time.Now().UTC()
	midday = now.Truncate(24 * time.Hour).Add(12*time.Hour + 30*time.Minute)
	if err := c.Set(midday.Sub(now)); err != nil {
		tb.Fatal(err)
	}
	return url, midday
}
