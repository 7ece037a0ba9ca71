package wire

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/errand-fleet/errand/cmd/internal/metrics"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/web"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/console"
)

// signed lists the routes that verify signatures themselves. Everything else at the front door requires the console
// token.
var signed = []string{"/slack/", "/github/"}

// Door is the front door: all of [web.Handler], and the metrics for holders of the metrics token.
type Door struct {
	*web.Handler
	parts *Parts
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
	chat := console.Chat{
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
		if poster, ok := s.(console.Poster); ok {
			chat.Source = poster
		}
	}
	metrics.NewFleet(p.registry, fleetState{p.Store})
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
		Proxy:          auth.Proxy{Header: p.Config.HTTP.ProxyHeader, From: p.Config.HTTP.Proxies},
	})
	if err != nil {
		return nil, err
	}
	return &Door{Handler: h, parts: p}, nil
}

// fleetState reads the state of the fleet for the metrics.
type fleetState struct{ *store.Store }

func (s fleetState) Unposted(ctx context.Context) (store.Unposted, error) {
	return s.Outbox.Backlog(ctx)
}

func (s fleetState) Workers(ctx context.Context) ([]store.Worker, error) {
	return s.Store.Workers.List(ctx)
}

func (s fleetState) Credentials(ctx context.Context) ([]store.Credential, error) {
	return s.Store.Credentials.List(ctx)
}

// MayScrape reports whether a request has the metrics token.
func (p *Parts) MayScrape(r *http.Request) bool {
	return auth.BearerMatches(r, p.Config.Fleet.MetricsToken.Reveal())
}

// Token returns a random secret of 128 bits for people to paste.
func Token() string { return rand.Text() }

// version is set by the linker if the build has no git information (Dockerfile).
var version string

// Version returns the version that this binary was built from.
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
