package wire

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/connlimit"
)

// Start makes the parts of a program that is about to serve: it protects the process's secrets, connects to Redis and logs what an
// operator has to know about both. Close the parts when the program ends.
func Start(ctx context.Context, c config.Config, log *slog.Logger, o Options) (*Parts, error) {
	notice, err := agent.MakePrivate()
	if notice != "" {
		log.Warn("secrets are not fully protected", "why", notice)
	}
	if err != nil {
		return nil, err
	}
	parts, err := New(c, log, o)
	if err != nil {
		return nil, err
	}
	if err := parts.checkStart(ctx); err != nil {
		return nil, errors.Join(err, parts.Close())
	}
	return parts, nil
}

// ServeDuring serves h on l while work runs, and calls stopping, which may be nil, when it begins to shut down. Work begins when Redis
// answers, and it ends when ctx ends or the server fails. The server still answers while work ends, so that an orchestrator sees a
// live process during the drain.
func (p *Parts) ServeDuring(ctx context.Context, l net.Listener, h http.Handler, stopping func(), work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var server sync.WaitGroup
	var served error
	server.Go(func() { defer cancel(); served = Serve(serving, l, h, stopping, p.Log) })
	err := p.awaitRedis(ctx)
	if err == nil && ctx.Err() == nil {
		err = work(ctx)
	}
	stop()
	server.Wait()
	return errors.Join(err, served)
}

// Serve serves h on l until ctx ends, and then waits up to 10 s for requests in progress. It calls stopping, which may be nil, when it
// begins to wait: streams do not end by themselves.
func Serve(ctx context.Context, l net.Listener, h http.Handler, stopping func(), log *slog.Logger) error {
	// No ReadTimeout and no WriteTimeout: both would cut event streams. Bodies are bounded by their handlers.
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	connlimit.Server(s, maxConnections())
	if stopping != nil {
		s.RegisterOnShutdown(stopping)
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := s.Shutdown(stop); err != nil {
		return fmt.Errorf("stop serving %s: %w", l.Addr(), err)
	}
	return nil
}

// maxConnections returns the limit of connections without a request, and of those with one: 1000, or less if the process may
// open fewer files.
func maxConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur/4 >= 1000 {
		return 1000
	}
	return max(int(files.Cur/4), 16) //nolint:gosec // less than 1000
}

// Listen listens on an address from a setting, which the error names.
func Listen(ctx context.Context, addr, variable string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (set %s to a free address)", addr, err, variable)
	}
	return l, nil
}

// Signals returns a context that ends at the first SIGINT or SIGTERM. At the second the process exits at once, and the keepers end
// the runs.
func Signals(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "second signal: exiting now; the keepers end running agents")
		os.Exit(130)
	}()
	return ctx
}
