package e2e

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// The backup of docs/deploy.md: a snapshot of a running Redis replaces the append-only file of another one.
func TestBackupOfRedisIsRestored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from := redistest.Client(t, redistest.Start(t))
	if err := from.Set(ctx, "errand:mark", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	// A Redis that replicates waits 5 s for further replicas before it begins.
	if err := from.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	backup := exec.CommandContext(ctx, "redis-cli", "-h", "127.0.0.1", "-p", port(from), "--rdb", "-")
	backup.Env = append(backup.Environ(), "REDISCLI_AUTH="+from.Options().Password)
	snapshot, err := backup.Output()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()
	url, stop := appendOnly(t, dir)
	if err := redistest.Client(t, url).Set(ctx, "errand:mark", "newer, and to be replaced", 0).Err(); err != nil {
		t.Fatal(err)
	}
	stop()
	restore := exec.CommandContext(ctx, "../deploy/redis-restore", dir)
	restore.Stdin = bytes.NewReader(snapshot)
	if out, err := restore.CombinedOutput(); err != nil || string(out) != "keys: 1\n" {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	url, stop = appendOnly(t, dir)
	defer stop()
	if got, err := redistest.Client(t, url).Get(ctx, "errand:mark").Result(); err != nil || got != "kept" {
		t.Errorf("after the restore it is %q, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("left beside the append-only file: %q, %v", left, err)
	}
}

func port(c *redis.Client) string {
	_, port, _ := net.SplitHostPort(c.Options().Addr)
	return port
}

// appendOnly runs a Redis as docker-compose.yml does.
func appendOnly(t *testing.T, dir string) (url string, stop func()) {
	t.Helper()
	path, _ := redisserver.Find()
	s, err := redisserver.Start(t.Context(), redisserver.Config{Path: path, Dir: dir, AppendOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return s.URL(), func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// An incomplete backup must not destroy the existing data.
func TestBadBackupChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, stop := appendOnly(t, dir)
	if err := redistest.Client(t, url).Set(t.Context(), "errand:mark", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	stop()
	for name, backup := range map[string]string{
		"empty": "", "cut off": "REDIS0011\xfa", "something else": "ERR no such command\n",
	} {
		restore := exec.CommandContext(t.Context(), "../deploy/redis-restore", dir)
		restore.Stdin = strings.NewReader(backup)
		if out, err := restore.CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "no complete snapshot of Redis; nothing was changed") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	url, stop = appendOnly(t, dir)
	defer stop()
	if got, err := redistest.Client(t, url).Get(t.Context(), "errand:mark").Result(); err != nil || got != "kept" {
		t.Errorf("it is %q, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("left beside the append-only file: %q, %v", left, err)
	}
}
