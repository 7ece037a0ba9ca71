package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver"
)

// standalone runs the whole system in one process until ctx ends.
func standalone(ctx context.Context, c config.Config, stdout, stderr io.Writer, o wire.Options) (err error) {
	generated := c.HTTP.ConsoleToken == ""
	if generated {
		c.HTTP.ConsoleToken = config.Secret(wire.Token())
	}
	log := wire.Logger(stderr, c, true)
	if c.Redis.URL == "" {
		url, stop, err := startRedis(ctx, c.Paths.State, log)
		if err != nil {
			return err
		}
		defer stop()
		c.Redis.URL = config.RedisURL(url)
	}
	parts, err := wire.Start(ctx, c, log, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	station, err := newStation(ctx, parts, o)
	if err != nil {
		return err
	}
	defer station.listener.Close()
	// The front door and the worker end together, by a signal or because one of them failed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	door, err := parts.FrontDoor(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	l, err := wire.Listen(ctx, c.HTTP.Addr, "ERRAND_HTTP_ADDR")
	if err != nil {
		return err
	}
	var parallel sync.WaitGroup
	var served, worked error
	parallel.Go(func() { defer cancel(); served = wire.Serve(ctx, l, door, func() { _ = door.Close() }, log) })
	parallel.Go(func() { defer cancel(); worked = station.run(ctx) })
	printHealth(stdout, station.worker.Examine(ctx))
	printAddresses(stdout, "http://"+l.Addr().String(), door.Invite(), generated, c)
	parallel.Wait()
	return errors.Join(served, worked)
}

// printHealth prints whether the worker can run tasks. If it cannot, everything else still works.
func printHealth(w io.Writer, h agent.Health) {
	if h.OK {
		fmt.Fprintln(w, "errand is up")
		return
	}
	fmt.Fprintf(w, "errand cannot run tasks: %s\n  remedy   %s\n           (tasks wait and start when this is fixed)\n", h.Problem, h.Remedy)
}

// printAddresses prints where everything is. The console's address logs in once. A generated token is printed, because
// the command line needs it, but not logged.
func printAddresses(w io.Writer, base, invite string, generated bool, c config.Config) {
	fmt.Fprintf(w, "  console  %s%s\n           (works once, within 15 minutes)\n", base, invite)
	if generated {
		fmt.Fprintf(w, "  token    %s\n           (ERRAND_CONSOLE_TOKEN for enqueue, and to log in again)\n", c.HTTP.ConsoleToken.Reveal())
	}
	fmt.Fprintf(w, "  queues   %s/queues/\n  logs     %s\n  config   %s\n", base, wire.LogDir(c), c.Summary())
	switch {
	case !c.Slack.Enabled():
	case c.Slack.SigningSecret != "":
		fmt.Fprintf(w, "  slack    %[1]s/slack/events and %[1]s/slack/interactions\n", base)
	default:
		fmt.Fprintf(w, "  slack    Socket Mode\n")
	}
	if c.GitHub.Enabled() {
		fmt.Fprintf(w, "  github   %s/github/webhook\n", base)
	}
}

// startRedis starts the Redis of a standalone system: redis-server with its data in the state directory, or one in
// memory.
func startRedis(ctx context.Context, state string, log *slog.Logger) (url string, stop func(), err error) {
	path, ok := redisserver.Find()
	if !ok {
		return memoryRedis(log)
	}
	dir := filepath.Join(state, "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("create directory for Redis: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, fmt.Errorf("lock directory for Redis: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return "", nil, fmt.Errorf("lock %s: another `worker -standalone` uses this state directory; stop it, or set ERRAND_STATE_DIR", dir)
	}
	server, err := redisserver.Start(ctx, redisserver.Config{Path: path, Dir: dir, AppendOnly: true})
	if err != nil {
		_ = lock.Close()
		return "", nil, err
	}
	log.Info("redis started", "pid", server.Pid(), "dir", dir)
	return server.URL(), func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if err := server.Stop(end); err != nil {
			log.Warn("stop redis", "err", err)
		}
		_ = lock.Close()
	}, nil
}

// memoryRedis starts a Redis in this process, whose data is lost when the process ends.
func memoryRedis(log *slog.Logger) (url string, stop func(), err error) {
	log.Warn("redis-server is not on PATH: tasks are kept in memory and are lost at exit; install redis-server or set REDIS_URL")
	m := miniredis.NewMiniRedis()
	password := wire.Token()
	m.RequireAuth(password)
	if err := m.Start(); err != nil {
		return "", nil, fmt.Errorf("start in-memory Redis: %w", err)
	}
	// miniredis has no clock: keys expire only when FastForward is called.
	tick, done := time.NewTicker(time.Second), make(chan struct{})
	go func() {
		for {
			select {
			case <-tick.C:
				m.FastForward(time.Second)
			case <-done:
				return
			}
		}
	}()
	return "redis://:" + password + "@" + m.Addr() + "/0", func() { tick.Stop(); close(done); m.Close() }, nil
}
