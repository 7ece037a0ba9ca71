// Command worker takes tasks from the queues, runs the Claude Code CLI on them and posts the answers. With -standalone
// it is the whole system in one process, and with -front-door the front door alone. Run `worker -h` for its flags; the
// environment configures everything else (.env.example).
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/cmd/internal/version"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/redisserver"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/web/logs"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command has secrets in its environment; assemble.Start reports a failure
	os.Exit(run(assemble.Signals(context.Background()), invocation{os.Args[1:], os.Getenv, os.Stdout, os.Stderr},
		assemble.Options{Process: true}))
}

// invocation is how the command was called.
type invocation struct {
	args           []string
	getenv         func(string) string
	stdout, stderr io.Writer
}

// run runs the command and returns the exit code. Tests pass options that shorten its intervals.
func run(ctx context.Context, in invocation, o assemble.Options) int {
	stdout, stderr := in.stdout, in.stderr
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(stderr)
	all := flags.Bool("standalone", false,
		"run the whole system in one process: front door, worker and, unless REDIS_URL is set, Redis")
	door := flags.Bool("front-door", false, "run only the front door: webhooks, API and console (enqueue serve)")
	once := onceFlags(flags)
	printConfig := flags.Bool("print-config", false, "print the configuration without secrets and exit")
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: worker [-standalone | -front-door | -once] [-print-config]\n"+
			"       worker healthcheck  whether the worker is ready\n"+
			"       worker check-model  whether the model answers, with each credential\n"+
			"       worker check-cli    how the CLI differs from the one that errand is tested with\n\n")
		flags.PrintDefaults()
	}
	if err := flags.Parse(in.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	role := roleOf(*all, *door, once.chosen)
	if !*printConfig && flags.NArg() == 1 && flags.Arg(0) == "healthcheck" {
		c, _ := config.Load(in.getenv, role) // the worker has started with it
		return exitCode(stderr, role, healthcheck(ctx, c.Worker.Addr, stdout))
	}
	c, err := assemble.Load(in.getenv, role)
	if *printConfig {
		return exitCode(stderr, role, show(in, c, err))
	}
	do := check(flags.Arg(0))
	if flags.NArg() > 1 || flags.NArg() == 1 && do == nil {
		fmt.Fprintf(stderr, "worker: unknown command %q\n", strings.Join(flags.Args(), " "))
		flags.Usage()
		return 2
	}
	if err == nil && do == nil && role == config.RoleOnce {
		err = once.begin(c, &o)
	}
	if err != nil {
		return exitCode(stderr, role, err)
	}
	if do != nil {
		return exitCode(stderr, role, do(ctx, c, stdout))
	}
	return exitCode(stderr, role, serve(ctx, role, c, in, o))
}

// show prints a configuration, also one that was loaded with an error, and warnings. It returns all errors.
func show(in invocation, c config.Config, err error) error {
	problems, _ := errors.AsType[config.Problems](err)
	err = errors.Join(err, c.Print(in.stdout))
	for _, n := range config.Unknown(os.Environ()) {
		if !problems.Has(n.Where) {
			fmt.Fprintln(in.stderr, "worker: warning:", n)
		}
	}
	return err
}

// check returns the check that a command names, or nil.
func check(command string) func(context.Context, config.Config, io.Writer) error {
	switch command {
	case "check-model":
		return checkModel
	case "check-cli":
		return checkCLI
	}
	return nil
}

// roleOf returns the role that the flags choose. The first one that is set counts.
func roleOf(standalone, frontDoor, once bool) config.Role {
	switch {
	case standalone:
		return config.RoleStandalone
	case frontDoor:
		return config.RoleFrontdoor
	case once:
		return config.RoleOnce
	}
	return config.RoleWorker
}

// serve runs what has a role until ctx ends.
func serve(ctx context.Context, role config.Role, c config.Config, in invocation, o assemble.Options) error {
	switch role {
	case config.RoleStandalone:
		return standalone(ctx, c, in.stdout, in.stderr, o)
	case config.RoleFrontdoor:
		if o.Process && in.getenv("GOGC") == "" {
			debug.SetGCPercent(200) // events leave only garbage: collect it less often than usual
		}
		return assemble.ServeFrontDoor(ctx, c, in.stdout, in.stderr, o)
	default:
		return work(ctx, c, in.stderr, o)
	}
}

// exitCode prints err, if any, and returns the exit code.
func exitCode(stderr io.Writer, role config.Role, err error) int {
	if err != nil {
		name := "worker:"
		if role == config.RoleFrontdoor {
			name = "enqueue serve:" // it has started this program
		}
		fmt.Fprintln(stderr, name, err)
		switch {
		case errors.Is(err, worker.ErrGaveBack):
			return 3
		case errors.Is(err, worker.ErrUnable):
			return 4
		}
		return 1
	}
	return 0
}

// work runs a worker of a fleet until ctx ends.
func work(ctx context.Context, c config.Config, stderr io.Writer, o assemble.Options) error {
	parts, err := assemble.Start(ctx, c, assemble.Logger(stderr, c), o)
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
	parts    *assemble.Parts
	worker   *worker.Worker
	listener net.Listener
}

// newStation listens on the worker's address. The caller calls run or closes the listener.
func newStation(ctx context.Context, parts *assemble.Parts, o assemble.Options) (*station, error) {
	l, err := assemble.Listen(ctx, parts.Config.Worker.Addr, "ERRAND_WORKER_ADDR")
	if err != nil {
		return nil, err
	}
	worker, err := parts.Worker(version.String(), assemble.WorkerURL(parts.Config, l.Addr()), o)
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
	mux.Handle("/logs/", logs.Server(assemble.LogDir(parts.Config), parts.Config.FleetToken().Reveal()))
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

// standalone runs the whole system in one process until ctx ends.
func standalone(ctx context.Context, c config.Config, stdout, stderr io.Writer, o assemble.Options) (err error) {
	generated := c.HTTP.ConsoleToken == ""
	if generated {
		c.HTTP.ConsoleToken = config.Secret(rand.Text())
	}
	log := assemble.Logger(stderr, c)
	if c.Redis.URL == "" {
		url, stop, err := startRedis(ctx, c.Paths.State, log)
		if err != nil {
			return err
		}
		defer stop()
		c.Redis.URL = config.RedisURL(url)
	}
	parts, err := assemble.Start(ctx, c, log, o)
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
	l, err := assemble.Listen(ctx, c.HTTP.Addr, "ERRAND_HTTP_ADDR")
	if err != nil {
		return err
	}
	var parallel sync.WaitGroup
	var served, worked error
	parallel.Go(func() { defer cancel(); served = assemble.Serve(ctx, l, door, func() { _ = door.Close() }, log) })
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
	fmt.Fprintf(w, "errand cannot run tasks: %s\n  remedy   %s\n           (tasks wait and start when this is fixed)\n",
		h.Problem, h.Remedy)
}

// printAddresses prints where everything is. The console's address logs in once. A generated token is printed, because
// the command line needs it, but not logged.
func printAddresses(w io.Writer, base, invite string, generated bool, c config.Config) {
	fmt.Fprintf(w, "  console  %s%s\n           (works once, within 15 minutes)\n", base, invite)
	if generated {
		fmt.Fprintf(w, "  token    %s\n           (ERRAND_CONSOLE_TOKEN for enqueue, and to log in again)\n",
			c.HTTP.ConsoleToken.Reveal())
	}
	fmt.Fprintf(w, "  queues   %s/queues/\n  logs     %s\n  config   %s\n", base, assemble.LogDir(c), c.Summary())
	switch {
	case !c.Slack.Enabled():
	case c.Slack.SigningSecret != "":
		fmt.Fprintf(w, "  slack    %[1]s/slack/events, %[1]s/slack/interactions and %[1]s/slack/commands\n", base)
	default:
		fmt.Fprintf(w, "  slack    Socket Mode\n")
	}
	switch {
	case !c.GitHub.Enabled():
	case c.GitHub.WebhookSecret != "":
		fmt.Fprintf(w, "  github   %s/github/webhook\n", base)
	default:
		fmt.Fprintf(w, "  github   polled every %s\n", c.GitHub.Poll)
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
		return "", nil,
			fmt.Errorf("lock %s: another `worker -standalone` uses this state directory; stop "+
				"it, or set ERRAND_STATE_DIR", dir)
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
	log.Warn("redis-server is not on PATH: tasks are kept in memory and are lost at exit; install " +
		"redis-server or set REDIS_URL")
	m := miniredis.NewMiniRedis()
	password := rand.Text()
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
