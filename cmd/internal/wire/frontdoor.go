package wire

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/internal/metrics"
	"github.com/errand-fleet/errand/internal/connlimit"
	"github.com/errand-fleet/errand/web"
)

// signed are the routes guarded by their own signatures; everything else at the front door needs the console token.
var signed = []string{"/slack/", "/github/"}

// Door is the front door. It is all of [web.Handler], and shows the metrics to their own token as well.
type Door struct {
	*web.Handler
	parts *Parts
}

// ServeHTTP shows the metrics to who has their token. To who has the console's, web's handler shows them.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/metrics" && d.parts.MayScrape(r) {
		d.parts.Metrics.ServeHTTP(w, r)
		return
	}
	d.Handler.ServeHTTP(w, r)
}

// FrontDoor is everything that is asked over HTTP: webhooks, API, console, queues. Close it after the server has stopped.
func (p *Parts) FrontDoor(ctx context.Context) (*Door, error) {
	mux := http.NewServeMux()
	var inbound []web.Inbound
	chat := web.Chat{
		Repositories: slices.Sorted(maps.Keys(p.Config.Routing.Repositories)), Dirs: p.Config.Paths.Dirs,
		Models: p.Config.Routing.Options.Models, Efforts: p.Config.Routing.Options.Efforts,
	}
	for _, s := range p.Sources {
		if err := s.Listen(ctx, mux, p.Desk); err != nil {
			return nil, fmt.Errorf("listen for %s: %w", s.Name(), err)
		}
		if in, ok := s.(web.Inbound); ok {
			inbound = append(inbound, in)
		}
		if poster, ok := s.(web.Poster); ok {
			chat.Source = poster
		}
	}
	metrics.NewFleet(p.registry, p.Store)
	mux.Handle("GET /metrics", p.Metrics)
	opt, err := queuesRedis(p.Config.Redis.URL)
	if err != nil {
		return nil, err
	}
	h, err := web.New(web.Config{
		Token: p.Config.HTTP.ConsoleToken.Reveal(), Desk: p.Desk, Store: p.Store, Redis: opt, LogDir: LogDir(p.Config),
		FleetToken: p.Config.FleetToken().Reveal(), Examine: p.examine, Notices: p.notices,
		Inbound: inbound, Chat: chat, Open: signed, Mux: mux, Ready: p.Ready, Log: p.Log,
		QueuesWritable: p.Config.HTTP.QueuesWritable,
		Proxy:          web.Proxy{Header: p.Config.HTTP.ProxyHeader, From: p.Config.HTTP.Proxies},
	})
	if err != nil {
		return nil, err
	}
	return &Door{Handler: h, parts: p}, nil
}

// MayScrape reports whether a request shows the token of the metrics.
func (p *Parts) MayScrape(r *http.Request) bool {
	return web.ShowsToken(r, p.Config.Fleet.MetricsToken.Reveal())
}

// Serve answers on a listener until ctx ends, and then lets what is under way finish, within reason. It calls stopping, which may be
// nil, when it begins to do so: streams have no end of their own.
func Serve(ctx context.Context, l net.Listener, h http.Handler, stopping func(), log *slog.Logger) error {
	// No ReadTimeout and no WriteTimeout: both would cut event streams. Bodies are bounded by their handlers.
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	connlimit.Server(s, mostConnections())
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

// mostConnections is how many connections a server keeps of those that have not sent a request yet, and of the others: a thousand, unless this
// process may not have that many files open at once.
func mostConnections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Cur/4 >= 1000 {
		return 1000
	}
	return max(int(files.Cur/4), 16) //nolint:gosec // less than 1000
}

// Listen opens an address. The error says what to do when it is taken.
func Listen(ctx context.Context, addr, variable string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w (set %s to a free address)", addr, err, variable)
	}
	return l, nil
}

// Signals is a context that ends at the first SIGINT or SIGTERM. At the second the process exits at once; the keepers then end
// what runs.
func Signals(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		fmt.Fprintln(os.Stderr, "second signal: exiting now; running agents are ended by their keepers")
		os.Exit(130)
	}()
	return ctx
}

// Token makes a secret for people to paste: 128 random bits.
func Token() string { return rand.Text() }

// version is set by the linker where there is no git to ask (Dockerfile).
var version string

// Version is what this binary was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return info.Main.Version
}
