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
	"sync"
	"time"

	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web"
)

// run is the whole command; it returns the exit code. Tests call it as main does, with options that shorten its rhythms.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer, o wire.Options) int {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	standalone := flags.Bool("standalone", false, "be the whole system in one process: front door, worker and, unless REDIS_URL is set, Redis")
	printConfig := flags.Bool("print-config", false, "print the configuration, without secrets, and exit")
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: worker [-standalone] [-print-config]\n       worker healthcheck\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	role := config.RoleWorker
	if *standalone {
		role = config.RoleStandalone
	}
	if !*printConfig && flags.NArg() == 1 && flags.Arg(0) == "healthcheck" {
		c, _ := config.Load(getenv, role) // of a worker whose configuration was good enough to start
		return exit(stderr, healthcheck(ctx, c.Worker.Addr, stdout))
	}
	c, err := wire.Load(getenv, role)
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
	case err == nil && *standalone:
		err = all(ctx, c, stdout, stderr, o)
	case err == nil:
		err = work(ctx, c, stderr, o)
	}
	return exit(stderr, err)
}

// exit reports err, if any, and returns the exit code.
func exit(stderr io.Writer, err error) int {
	if err != nil {
		fmt.Fprintln(stderr, "worker:", err)
		return 1
	}
	return 0
}

// work is a worker of a fleet.
func work(ctx context.Context, c config.Config, stderr io.Writer, o wire.Options) error {
	log := wire.Logger(stderr, c, false)
	if err := wire.Private(log); err != nil {
		return err
	}
	parts, err := wire.New(c, log, o)
	if err != nil {
		return err
	}
	s, err := newStation(ctx, parts, o)
	if err != nil {
		return errors.Join(err, parts.Close())
	}
	if err := parts.Greet(ctx); err != nil {
		return errors.Join(err, s.listener.Close(), parts.Close())
	}
	return errors.Join(s.run(ctx), parts.Close())
}

// station is a worker, and the address at which an orchestrator and front doors ask for it.
type station struct {
	parts    *wire.Parts
	worker   *tasks.Worker
	listener net.Listener
}

// newStation needs run or, when it comes to nothing, that the listener is closed.
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

// run works until ctx ends, from when Redis has been looked at. It answers through the worker's drain as well: an orchestrator shall see a process that lives.
func (s *station) run(ctx context.Context) error {
	var serving sync.WaitGroup
	serve, stop := context.WithCancel(context.WithoutCancel(ctx))
	var served error
	serving.Go(func() { served = wire.Serve(serve, s.listener, probes(ctx, s), nil, s.parts.Log) })
	err := s.parts.Await(ctx)
	if err == nil && ctx.Err() == nil {
		err = s.worker.Run(ctx)
	}
	stop()
	serving.Wait()
	return errors.Join(err, served)
}

// probes are what a worker is asked: by an orchestrator whether it lives and takes work, by Prometheus for metrics, by a front door for logs.
func probes(ctx context.Context, s *station) http.Handler {
	mux, parts := http.NewServeMux(), s.parts
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("/logs/", web.LogServer(wire.LogDir(parts.Config), parts.Config.FleetToken().Reveal()))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if !parts.MayScrape(r) {
			http.Error(w, "the token of the metrics is needed (ERRAND_METRICS_TOKEN)", http.StatusUnauthorized)
			return
		}
		parts.Metrics.ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		err := errors.Join(parts.Ready(r.Context()), s.able())
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

// able says why the worker takes no tasks; nil when it does. Everybody may hear it: it names no path.
func (s *station) able() error {
	switch h, known := s.worker.Health(); {
	case !known:
		return errors.New("the CLI has not answered yet")
	case !h.OK:
		return errors.New(h.Sentence)
	}
	return nil
}

// healthcheck asks the worker of this container whether it takes work, whatever proxy the container has for the rest of the world.
func healthcheck(ctx context.Context, addr string, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask worker at %s: %w", addr, err)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := direct.Do(req)
	if err != nil {
		return fmt.Errorf("ask worker at %s: %w", addr, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("worker at %s is not ready: %s", addr, reason)
	}
	fmt.Fprintln(stdout, "ok")
	return nil
}
