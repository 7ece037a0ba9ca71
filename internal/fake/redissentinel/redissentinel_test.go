package redissentinel

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func start(t *testing.T) *Redis {
	t.Helper()
	r, err := Start(t.Context(), t.TempDir())
	t.Cleanup(r.Stop)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func set(t *testing.T, c *redis.Client, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := c.Set(ctx, key, 1, 0).Err()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("set %s: %v", key, err)
		}
	}
}

func has(t *testing.T, c *redis.Client, key string) bool {
	t.Helper()
	err := c.Get(t.Context(), key).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return err == nil
}

// A client follows the master, and a fail-over loses exactly what the replica did not get.
func TestFailOver(t *testing.T) {
	t.Parallel()
	r := start(t)
	c := r.Client()
	defer c.Close()
	set(t, c, "replicated")
	if n, err := c.Wait(t.Context(), 1, 5*time.Second).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas, %v", n, err)
	}
	lagging := make(chan error)
	go func() { lagging <- r.Kill(t.Context(), time.Second) }()
	for c.Do(t.Context(), "WAIT", 1, 20).Val() != int64(0) {
		set(t, c, "before") // until the replica is off
	}
	set(t, c, "lost")
	if err := <-lagging; err != nil {
		t.Fatal(err)
	}
	set(t, c, "after")
	if !has(t, c, "replicated") || has(t, c, "lost") {
		t.Errorf("replicated: %t, lost: %t", has(t, c, "replicated"), has(t, c, "lost"))
	}
	if err := r.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Freeze(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	set(t, c, "last")
	if !has(t, c, "replicated") || !has(t, c, "after") {
		t.Error("a fail-over lost what the replica had")
	}
}
