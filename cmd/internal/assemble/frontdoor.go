package assemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/metrics"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/connlimit"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/automation"
	"github.com/errand-fleet/errand/tasks/chat"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/slack"
	"github.com/errand-fleet/errand/web"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/console"
)

// signed lists the routes that verify signatures themselves. Everything else at the front door requires the console
// token.
var signed = []string{"/slack/", "/github/", automation.Prefix}

// Door is the front door: all of [web.Handler], and the metrics for holders of the metrics token.
type Door struct {
	*web.Handler
	parts *Parts
	stop  func() // the inboxes
}

// ServeHTTP serves the metrics to requests with the metrics token. web's handler serves them to requests with the
// console token.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/metrics" && d.parts.MayScrape(r) {
		d.parts.Metrics.ServeHTTP(w, r)
		return
	}
	d.Handler.ServeHTTP(w, r)
}

// FrontDoor returns the handler of all HTTP routes: webhooks, API, console, queues. Close it after the server has
// stopped.
func (p *Parts) FrontDoor(ctx context.Context) (*Door, error) {
	mux := http.NewServeMux()
	var inbound []web.Inbound
	talk := console.Chat{
		Repositories: slices.Sorted(maps.Keys(p.Config.Routing.Repositories)), Dirs: p.Config.Paths.Dirs,
		Models: p.Config.Routing.Options.Models, Efforts: p.Config.Routing.Options.Efforts, Source: p.chat,
	}
	for _, s := range p.Sources {
		if err := s.Listen(ctx, mux, p.Desk); err != nil {
			return nil, fmt.Errorf("listen for %s: %w", s.Name(), err)
		}
		if last := s.Capabilities().Inbound; last != nil {
			inbound = append(inbound, web.Inbound{Source: s.Name(), Last: last})
		}
	}
	metrics.NewFleet(p.registry, p.policy, func(ctx context.Context) (metrics.Fleet, error) {
		return metrics.ReadFleet(ctx, p.Store)
	})
	mux.Handle("GET /metrics", forWholeFleet(p.Metrics))
	access, err := p.access()
	if err != nil {
		return nil, err
	}
	h, err := web.New(web.Config{
		Token: p.Config.HTTP.ConsoleToken.Reveal(), Desk: p.Desk, Store: p.Store, Redis: queuesRedis{p},
		LogDir: LogDir(p.Config), FleetToken: p.Config.FleetToken().Reveal(), Examine: p.examine, Notices: p.notices,
		Shown: p.Config.Shown(), Inbound: inbound, Chat: talk, Links: p.links, Reviews: p.reviews(),
		Scheduler: p.schedules, Inbox: p.served, Open: signed, Mux: mux, Ready: p.Ready,
		Explain: p.explain, Log: p.Log,
		Roles: map[string]policy.Role{chat.Pattern: policy.User, "GET /metrics": policy.Operator},
		Proxy: auth.Proxy{
			Header: p.Config.HTTP.ProxyHeader, Groups: p.Config.HTTP.ProxyGroups, From: p.Config.HTTP.Proxies,
		},
		Access: access, Provider: provider(p.Config), TaskLinks: taskLinks(p.Config),
	})
	if err != nil {
		return nil, err
	}
	stop, err := p.served.Serve()
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return &Door{Handler: h, parts: p, stop: stop}, nil
}

// forWholeFleet refuses visitors whose role is limited to repositories: the metrics are those of all.
func forWholeFleet(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := people.VisitorOf(r.Context()).Operates(r.Context(), ""); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Close ends event streams and stops the inboxes.
func (d *Door) Close() error {
	d.stop()
	return d.Handler.Close()
}

// links returns the pages of other products that a task is about.
func (p *Parts) links(t tasks.Task) (l tasks.Links) {
	for _, s := range p.Sources {
		if links := s.Capabilities().Links; links != nil && s.Name() == t.Source {
			l = links(t)
		}
	}
	if t.Repo != "" {
		l.Repository = p.Config.GitHub.URL + "/" + t.Repo
	}
	return l
}

// MayScrape reports whether a request has the metrics token.
func (p *Parts) MayScrape(r *http.Request) bool {
	return auth.BearerMatches(r, p.Config.Fleet.MetricsToken.Reveal())
}

// ServeFrontDoor runs the front door of a fleet until ctx ends, and prints its address.
func ServeFrontDoor(ctx context.Context, c config.Config, stdout, stderr io.Writer, o Options) (err error) {
	parts, err := Start(ctx, c, Logger(stderr, c), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	door, err := parts.FrontDoor(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	l, err := Listen(ctx, c.HTTP.Addr, "ERRAND_HTTP_ADDR")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "errand listens at http://%s\n", l.Addr())
	return parts.ServeDuring(ctx, l, door, func() { _ = door.Close() }, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}

// Start makes the parts of a program that is about to serve: it protects the process's secrets, connects to Redis and
// logs what an operator has to know about both. Close the parts when the program ends.
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

// ServeDuring serves h on l while work runs, and calls stopping, which may be nil, when it begins to shut down. Work
// begins when Redis answers, and it ends when ctx ends or the server fails. The server still answers while work ends,
// so that an orchestrator sees a live process during the drain.
func (p *Parts) ServeDuring(
	ctx context.Context, l net.Listener, h http.Handler, stopping func(), work func(context.Context) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var server sync.WaitGroup
	var served error
	server.Go(func() { defer cancel(); served = Serve(serving, l, h, stopping, p.Log) })
	var strange error
	err := p.awaitRedis(ctx)
	if err == nil && ctx.Err() == nil {
		server.Go(func() {
			if strange = p.awaitFleet(ctx); strange != nil {
				cancel()
			}
		})
		err = work(ctx)
		cancel()
	}
	stop()
	server.Wait()
	return errors.Join(err, served, strange)
}

// Serve serves h on l until ctx ends, and then waits up to 10 s for requests in progress. It calls stopping, which may
// be nil, when it begins to wait: streams do not end by themselves.
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

// maxConnections returns the limit of connections without a request, and of those with one: 1000, or less if the
// process may open fewer files.
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

// Signals returns a context that ends at the first SIGINT or SIGTERM. At the second the process exits at once, and the
// keepers end the runs. Signals that come together are one: timeout(1) sends its own to the process and to its group.
func Signals(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		first := time.Now()
		for range signals {
			if time.Since(first) > time.Second {
				break
			}
		}
		fmt.Fprintln(os.Stderr, "second signal: exiting now; the keepers end running agents")
		os.Exit(130)
	}()
	return ctx
}

// slackBoard posts the results of watched GitHub repositories to Slack. The GitHub source needs it before the Slack
// source exists, so slack is set later, but before anything runs.
type slackBoard struct {
	slack *slack.Source // nil without Slack; then no repository is only watched
}

// Watches reports whether a repository is only watched.
func (b *slackBoard) Watches(repo string) bool { return b.slack != nil && b.slack.Watches(repo) }

// Tell posts a notice to Slack.
func (b *slackBoard) Tell(ctx context.Context, n tasks.Notice) error { return b.slack.Tell(ctx, n) }

// examine checks the model and the services of all sources concurrently, so that the slowest one determines the time.
func (p *Parts) examine(ctx context.Context) (list []store.Finding) {
	var checks []func(context.Context) []doctor.Finding
	for _, s := range p.Sources {
		if diagnose := s.Capabilities().Diagnose; diagnose != nil {
			checks = append(checks, diagnose)
		}
	}
	checks = append(checks, p.diagnoseFleet, p.checkObjects, p.served.Diagnose, p.checkModel,
		p.diagnoseRepositories)
	found := make([][]doctor.Finding, len(checks))
	var all sync.WaitGroup
	for i, check := range checks {
		all.Go(func() { found[i] = check(ctx) })
	}
	all.Wait()
	for _, findings := range found {
		for _, c := range findings {
			list = append(list, finding(c))
		}
	}
	return list
}

// finding converts a source's finding; if all is well it has no severity.
func finding(c doctor.Finding) store.Finding {
	f := store.Finding{What: c.What, Why: c.Why, Remedy: c.Remedy}
	switch {
	case c.Fatal:
		f.Severity = store.Fatal
	case c.Why != "":
		f.Severity = store.Warning
	}
	return f
}

// queuesRedis connects the queue pages to Redis. asynq's own URL parser drops the user name and knows no TLS to
// Sentinels.
type queuesRedis struct{ *Parts }

// MakeRedisClient implements asynq.RedisConnOpt. The queue pages close the client.
func (r queuesRedis) MakeRedisClient() any {
	c, err := r.client()
	if err != nil {
		panic(err) // New has done the same
	}
	return c
}
