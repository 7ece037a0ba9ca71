package redisserver

import (
	"context"
	"time"
)

// TB is the part of testing.TB that [ForTest] needs. It is declared here so that no program of errand links package
// testing.
type TB interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// ForTest starts a server for one test, stops it when the test ends, and returns its URL. A start takes about 10 ms.
func ForTest(tb TB) string {
	tb.Helper()
	path, ok := Find()
	if !ok {
		tb.Fatal("redis-server is missing: run make setup (or apt-get install redis-server)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, err := Start(ctx, Config{Path: path, Dir: tb.TempDir()})
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
