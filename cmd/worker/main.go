// Command worker takes tasks from the queues, runs the Claude Code CLI on them and posts the answers. With -standalone
// it is the whole system in one process. Run `worker -h` for its flags; the environment configures everything else
// (.env.example).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/web/logs"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command has secrets in its environment; wire.Start reports a failure
	os.Exit(run(wire.Signals(context.Background()), invocation{os.Args[1:], os.Getenv, os.Stdout, os.Stderr}, wire.Options{Process: true}))
}

// invocation is how the command was called.
type invocation struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
}

// run runs the command and returns the exit code. Tests pass options that shorten its intervals.
func run(ctx context.Context, in invocation, o wire.Options) int {
	stdout, stderr := in.stdout, in.stderr
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := flags.Bool("standalone", false, "run the whole system in one process: front door, worker and, unless REDIS_URL is set, Redis")
	printConfig := flags.Bool("print-config", false, "print the configuration without secrets and exit")
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: worker [-standalone] [-print-config]\n       worker healthcheck\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(in.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	role := config.RoleWorker
	if *all {
		role = config.RoleStandalone
	}
	if !*printConfig && flags.NArg() == 1 && flags.Arg(0) == "healthcheck" {
		c, _ := config.Load(in.getenv, role) // the worker has started with it
		return exitCode(stderr, healthcheck(ctx, c.Worker.Addr, stdout))
	}
	c, err := wire.Load(in.getenv, role)
	switch {
	case *printConfig:
		if perr := c.Print(stdout); perr != nil {
			err = errors.Join(err, perr)
		}
		for _, n := range config.Unknown(os.Environ()) {
			fmt.Fprintln(stderr, "worker: warning:", n)
		}
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "worker: unknown command %q\n", strings.Join(flags.Args(), " "))
		flags.Usage()
		return 2
	case err == nil && *all:
		err = standalone(ctx, c, stdout, stderr, o)
	case err == nil:
		err = work(ctx, c, stderr, o)
	}
	return exitCode(stderr, err)
}

// exitCode prints err, if any, and returns the exit code.
func exitCode(stderr io.Writer, err error) int {
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return 1
	}
	return 0
}

// work runs a worker of a fleet until ctx ends.
func work(ctx context.Context, c config.Config, stderr io.Writer, o wire.Options) error {
	parts, err := wire.Start(ctx, c, wire.Logger(stderr, c, false), o)
	if err != nil {
		return err
	}
	s, err := newStation(ctx, parts, o)
	if err != nil {
		return errors.Join(err, parts.Close())
	}
	return errors.Join(s.run(ctx), parts.Close())
}

// station is a worker with the HTTP server for its orchestrator, Prometheus and front doors.
type station struct {
	parts    *wire.Parts
	worker   *worker.Worker
	listener net.Listener
}

// newStation listens on the worker's address. The caller calls run or closes the listener.
func newStation(ctx context.Context, parts *wire.Parts, o wire.Options) (*station, error) {
	l, err := wire.Listen(ctx, parts.Config.Worker.Addr, "ERRAND_WORKER_ADDR")
	if err != nil {
		return nil, err
	}
	worker, err := parts.Worker(wire.Version(), wire.WorkerURL(parts.Config, l.Addr()), o)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &station{parts, worker, l}, nil
}

// run runs the worker until ctx ends.
func (s *station) run(ctx context.Context) error {
	return s.parts.ServeDuring(ctx, s.listener, s.probes(ctx), nil, s.worker.Run)
}

// probes serves liveness and readiness to an orchestrator, metrics to Prometheus, and logs to front doors.
func (s *station) probes(ctx context.Context) http.Handler {
	mux, parts := http.NewServeMux(), s.parts
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/logs/", logs.Server(wire.LogDir(parts.Config), parts.Config.FleetToken().Reveal()))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !parts.MayScrape(r) {
			http.Error(w, "missing or wrong metrics token (ERRAND_METRICS_TOKEN)", http.StatusUnauthorized)
			return
		}
		parts.Metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := errors.Join(parts.Ready(r.Context()), s.ready())
		if ctx.Err() != nil {
			err = errors.New("shutting down")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// ready returns an error if the worker takes no tasks. The error is public: it contains no path.
func (s *station) ready() error {
	switch h, known := s.worker.Health(); {
	case !known:
		return errors.New("the CLI has not answered yet")
	case !h.OK:
		return errors.New(h.Sentence)
	}
	return nil
}

// healthcheck asks the worker of this container whether it takes tasks. It ignores the container's proxy settings.
func healthcheck(ctx context.Context, addr string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("request %s: %w", addr, err)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("request %s: %w", addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("worker at %s is not ready: %s", addr, reason)
	}
	fmt.Fprintln(stdout, "ok")
	return nil
}
