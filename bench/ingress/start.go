package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
)

// patience bounds the wait for one run.
const patience = 30 * time.Second

// start measures from an event to the first instruction of the CLI, on an idle worker.
func (b *bench) start(ctx context.Context) (err error) {
	list, err := b.contenders()
	if err != nil {
		return err
	}
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("empty Redis: %w", err)
	}
	if err := os.Symlink(b.self, filepath.Join(b.dir, fakecli.Name)); err != nil {
		return fmt.Errorf("name the CLI: %w", err)
	}
	l, err := fakecli.Listen(ctx, b.dir)
	if err != nil {
		return err
	}
	defer l.Close()
	own := list[1]
	front, err := b.serve(ctx, own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, front.Stop()) }()
	stop, err := b.worker(ctx, own.Env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	var delays []time.Duration
	for i := range b.Starts + 1 {
		d, err := b.started(ctx, l, front)
		if err != nil {
			return err
		}
		if i > 0 { // the first one waited for the worker
			delays = append(delays, d)
		}
		// Send the next one at any phase of the worker's polling.
		if !door.Until(ctx, time.Now().Add(100*time.Millisecond+rand.N(50*time.Millisecond))) { //nolint:gosec // not a secret
			return context.Cause(ctx)
		}
	}
	slices.Sort(delays)
	all := door.Load{Delays: delays}
	b.report.Most("from an event to the CLI, p50", table.Milliseconds(all.Percentile(.5)), 150, "%.0f ms")
	b.report.Most("the same, p99", table.Milliseconds(all.Percentile(.99)), 350, "%.0f ms")
	return nil
}

// worker starts a worker of the fleet.
func (b *bench) worker(ctx context.Context, env []string) (stop func() error, err error) {
	p := door.Program{
		Name: "worker", Args: []string{filepath.Join(b.Bin, "worker")}, Dir: b.dir, Redis: b.redisURL,
		Env: append([]string{
			"ERRAND_CLAUDE=" + filepath.Join(b.dir, fakecli.Name), "ERRAND_SANDBOX=none", "ERRAND_ALLOW_ROOT=true",
			"ERRAND_WORKER_ADDR=127.0.0.1:0", "ERRAND_CONCURRENCY=4",
			"ANTHROPIC_API_KEY=sk-ant-bench-key", "ANTHROPIC_BASE_URL=http://127.0.0.1:9",
		}, env...),
	}
	s, err := p.Launch(ctx)
	if err != nil {
		return nil, err
	}
	return s.Stop, nil
}

// started sends one event and waits for its CLI, and then for the end of the task.
func (b *bench) started(ctx context.Context, l net.Listener, front *server) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	begun := time.Now()
	sent, err := door.Fire(ctx, front.Addr, [][]byte{b.slack.Request(front.Addr, front.path, "numbers 1")}, 0)
	if err != nil || sent.Taken != 1 {
		return 0, fmt.Errorf("send event: %w", errors.Join(err, context.Cause(ctx)))
	}
	conn, err := l.Accept()
	took := time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("wait for the CLI: %w", err)
	}
	defer conn.Close()
	_, _ = io.Copy(io.Discard, conn) // until the CLI has ended
	select {
	case <-b.slack.Final:
		return took, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the answer: %w", context.Cause(ctx))
	}
}
