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

// all is the whole system in one process.
func all(ctx context.Context, c config.Config, stdout, stderr io.Writer, o wire.Options) (err error) {
	made := c.HTTP.ConsoleToken == ""
	if made {
		c.HTTP.ConsoleToken = config.Secret(wire.Token())
	}
	log := wire.Logger(stderr, c, true)
	if err := wire.Private(log); err != nil {
		return err
	}
	if c.Redis.URL == "" {
		url, stop, err := ownRedis(ctx, c.Paths.State, log)
		if err != nil {
			return err
		}
		defer stop()
		c.Redis.URL = config.RedisURL(url)
	}
	parts, err := wire.New(c, log, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	station, err := newStation(ctx, parts, o)
	if err != nil {
		return err
	}
	defer station.listener.Close()
	if err := parts.Greet(ctx); err != nil {
		return err
	}
	// Neither half goes on without the other; what ends both is the signal, or that one of them could not begin.
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
	var all sync.WaitGroup
	var served, worked error
	all.Go(func() { defer cancel(); served = wire.Serve(ctx, l, door, func() { _ = door.Close() }, log) })
	all.Go(func() { defer cancel(); worked = station.run(ctx) })
	headline(stdout, station.worker.Examine(ctx))
	welcome(stdout, "http://"+l.Addr().String(), door.Invite(), made, c)
	all.Wait()
	return errors.Join(served, worked)
}

// headline says whether tasks can be run. Where they cannot, everything else works: the console shows the same.
func headline(w io.Writer, h agent.Health) {
	if h.OK {
		fmt.Fprintln(w, "errand is up")
		return
	}
	fmt.Fprintf(w, "errand cannot run tasks: %s\n  remedy   %s\n           (tasks wait, and start by themselves when that is done)\n", h.Problem, h.Remedy)
}

// welcome says where everything is. The console's address opens it once. A token that was made here is shown here and logged nowhere:
// the command line needs it.
func welcome(w io.Writer, base, invite string, made bool, c config.Config) {
	fmt.Fprintf(w, "  console  %s%s\n           (opens once, within 15 minutes)\n", base, invite)
	if made {
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

// ownRedis brings the Redis of a standalone system: a real one with its data in the state directory, or else one in memory.
func ownRedis(ctx context.Context, state string, log *slog.Logger) (url string, stop func(), err error) {
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

// memoryRedis forgets everything when the process ends.
func memoryRedis(log *slog.Logger) (url string, stop func(), err error) {
	log.Warn("redis-server is not on PATH: tasks are kept in memory and do not survive an exit; install redis-server or set REDIS_URL")
	m := miniredis.NewMiniRedis()
	password := wire.Token()
	m.RequireAuth(password)
	if err := m.Start(); err != nil {
		return "", nil, fmt.Errorf("start in-memory Redis: %w", err)
	}
	// It has no clock of its own: keys expire only as it is told that time goes by.
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
