package assemble

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

// A process is not ready on a Redis that may drop tasks, is on one in memory, and says at its start what is wrong with
// each.
func TestRedisIsLookedAt(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	on := func(url string) *Parts {
		t.Helper()
		logged.Reset()
		p, err := New(config.Config{Redis: config.Redis{URL: config.RedisURL(url)}},
			slog.New(slog.NewTextHandler(&logged, nil)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	check := func(p *Parts, problem, said string) {
		t.Helper()
		if err := p.Ready(t.Context()); (err == nil) != (problem == "") || err != nil && err.Error() != problem {
			t.Errorf("ready: %v, want %q", err, problem)
		}
		if err := p.checkStart(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(logged.String(), said) {
			t.Errorf("%q is not said:\n%s", said, logged.String())
		}
	}
	p := on(redistest.Start(t))
	p.notices = Notices(p.Config, []string{"ERRAND_RUN_LIMT=1h"})
	check(p, "", `level=WARN msg=configuration what="ERRAND_RUN_LIMT`)
	check(p, "", `level=WARN msg=redis what="Redis runs without appendonly"`)
	for _, args := range [][2]string{{"maxmemory", "1gb"}, {"maxmemory-policy", "allkeys-lru"}} {
		if err := p.Redis.ConfigSet(t.Context(), args[0], args[1]).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Ready(t.Context()); err == nil || err.Error() != "Redis runs with maxmemory-policy allkeys-lru" {
		t.Errorf("ready: %v", err)
	}
	if err := p.checkStart(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "Set maxmemory-policy noeviction.") {
		t.Errorf("begins work on a Redis that evicts: %v", err)
	}

	memory := miniredis.RunT(t)
	p = on("redis://" + memory.Addr())
	if err := p.checkStart(t.Context()); err == nil || !strings.Contains(err.Error(), "asks for no password") {
		t.Errorf("begins work on an open Redis: %v", err)
	}
	memory.RequireAuth("pw")
	p = on("redis://:pw@" + memory.Addr())
	check(p, "", `level=WARN msg=redis what="Redis is in memory`)
	late := "redis://" + memory.Addr()
	memory.Close()
	check(p, "Redis does not answer", "redis does not answer")

	p = on(late)
	check(p, "Redis does not answer", "redis does not answer")
	memory.RequireAuth("")
	if err := memory.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := p.awaitRedis(t.Context()); err == nil || !strings.Contains(err.Error(), "asks for no password") {
		t.Errorf("begins work on an open Redis that was late: %v", err)
	}
}
