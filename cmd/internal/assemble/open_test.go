package assemble

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/errand-fleet/errand/config"
)

// A front door ends on an open Redis, also on one that was away when it started.
func TestOpenRedisIsLate(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	addr := m.Addr()
	m.Close()
	env := map[string]string{
		"REDIS_URL": "redis://" + addr, "ERRAND_HTTP_ADDR": "127.0.0.1:0",
		"ERRAND_CONSOLE_TOKEN": strings.Repeat("x", 32), "ERRAND_STATE_DIR": t.TempDir(),
	}
	c, err := Load(func(k string) string { return env[k] }, config.RoleFrontdoor)
	if err != nil {
		t.Fatal(err)
	}
	r, stderr := io.Pipe()
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // for a front door that starts and should not
	defer cancel()
	go func() {
		ended <- ServeFrontDoor(ctx, c, io.Discard, stderr, Options{})
		_ = stderr.Close()
	}()
	lines := bufio.NewScanner(r)
	for late := false; lines.Scan(); {
		if !late && strings.Contains(lines.Text(), "redis does not answer") {
			late = true
			if err := m.Restart(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "Redis asks for no password") {
		t.Errorf("ended with %v", err)
	}
}
