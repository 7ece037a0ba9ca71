// Package redistest starts real Redis servers for tests.
package redistest

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/redisserver"
)

// Find returns the program to test with: ERRAND_TEST_REDIS, such as the path of a valkey-server, or what
// redisserver.Find returns.
func Find() (path string, ok bool) {
	if path = os.Getenv("ERRAND_TEST_REDIS"); path != "" {
		return path, true
	}
	return redisserver.Find()
}

// Start starts a server for one test, stops it when the test ends, and returns its URL. A start takes about 10 ms.
func Start(tb testing.TB, env ...string) string {
	tb.Helper()
	path, ok := Find()
	if !ok {
		tb.Fatal("redis-server is missing: run make setup (or apt-get install redis-server)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := redisserver.Start(ctx, redisserver.Config{Path: path, Dir: tb.TempDir(), Env: env})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return s.URL()
}

// Client connects to a server, and closes the connection when the test ends.
func Client(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	opt, err := redis.ParseURL(url)
	if err != nil {
		tb.Fatal(err)
	}
	c := redis.NewClient(opt)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
