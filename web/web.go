// Package web puts together what the fleet shows over HTTP: the pages of web/console, the JSON API of web/api, the
// probes, and the routes of the sources.
//
// Every route declares the role that a visitor needs (web/auth), and a route without a role is closed. Only the probes,
// the login, styles and scripts, and the routes of sources that verify a signature need none. The desk shows visitors
// only the tasks that they may see. Another site cannot act through a visitor's browser. Event streams end when the
// handler is closed, and when a reader stops reading. Limits on the duration of whole requests are the server's, and so
// the caller's.
//
// A Handler may be used from any number of goroutines. It changes tasks only through the desk.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/console"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
	"github.com/errand-fleet/errand/web/logs"
	"github.com/errand-fleet/errand/web/mcpserver"
)

// Inbound is a source that knows whether its service's events reach this process.
type Inbound = view.Inbound

// Scheduler starts tasks at set times.
type Scheduler = api.Scheduler

// Inbox keeps what was sent to errand until it is interpreted, and deliveries of webhooks.
type Inbox = api.Inbox

// Task returns what the API returns of one task. reviews are those of the sources.
func Task(ctx context.Context, s tasks.Status, reviews map[string]tasks.Reviewer) (any, error) {
	return (&view.Reader{Reviews: reviews}).Whole(ctx, s)
}

// Config configures a Handler. Token, Desk, Store and Redis are required.
type Config struct {
	// the console token: printable ASCII without space, quotes, comma, semicolon and backslash
	Token  string
	Desk   *desk.Desk         // reads and changes tasks
	Store  *store.Store       // reads workers, events, logs and health
	Redis  asynq.RedisConnOpt // for asynqmon, which opens its own connections
	Proxy  auth.Proxy         // authenticates people instead of the token
	Access *auth.Access       // what people may do; nil: those whom the proxy names may do everything
	LogDir string             // the logs of this machine's runs; empty if it has none

	Provider  *auth.Provider // where people log in; nil: only with the token
	TaskLinks *auth.Links    // nil: links to tasks need a login

	FleetToken string // opens the logs of other machines; empty: workers are not asked for logs

	Links   func(tasks.Task) tasks.Links // the pages of other products that a task is about; nil: unknown
	Chat    console.Chat                 // the chat page
	Reviews map[string]tasks.Reviewer    // by source
	Inbound []Inbound                    // sources whose events the health reports on
	Notices []store.Finding              // about the configuration of this process
	// the configuration of this process, without secrets; nil: it is not shown
	Shown   *config.Shown
	Examine func(context.Context) []store.Finding // checks the services of the sources; nil if there are none

	Scheduler Scheduler // nil: there are no schedules
	Inbox     Inbox     // of the whole fleet

	Mux   *http.ServeMux         // has, or will have, the routes of the sources; nil: an empty one
	Roles map[string]policy.Role // what the other routes of Mux need, by pattern; a route without a role is closed
	// subtrees of Mux, such as "/slack/", that need no token because they verify a signature
	Open  []string
	Ready func(context.Context) error // what else must work for this process; its error is public. nil: only Redis

	Explain func(error) (what, remedy string) // why Redis cannot be used, without addresses; nil: it does not answer

	Heartbeat time.Duration // between two comments that keep a silent stream open; 0: 15 s
	Log       *slog.Logger  // nil: no log

	now func() time.Time // nil: time.Now
}

// Handler serves the console. Create one with New and close it when the server shuts down.
type Handler struct {
	mux     *http.ServeMux
	out     *respond.Responder
	open    []string
	ready   func(context.Context) error
	guard   *auth.Guard
	public  http.Handler // for the routes that need no login
	guarded http.Handler // for everything that is not public
	console *console.Console
	logs    *logs.Reader
	view    *view.Reader

	cancel context.CancelFunc // ends the streams
	close  func() error
}

// New creates a handler and adds its routes to cfg.Mux. It opens no connections.
func New(cfg Config) (*Handler, error) {
	switch {
	case cfg.Desk == nil || cfg.Store == nil || cfg.Redis == nil:
		return nil, errors.New("web: desk, store and Redis are required")
	case slices.ContainsFunc(cfg.Open, func(p string) bool { return len(p) < 3 || p[0] != '/' || p[len(p)-1] != '/' }):
		return nil, fmt.Errorf("web: open paths must be subtrees such as /slack/, not %q", cfg.Open)
	}
	log := cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	now := cfg.now
	if now == nil {
		now = time.Now
	}
	explain := cfg.Explain
	if explain == nil {
		explain = func(error) (what, remedy string) {
			return "Redis does not answer", "Check that Redis runs and REDIS_URL is right."
		}
	}
	out, err := respond.New(log)
	if err != nil {
		return nil, err
	}
	h := &Handler{mux: cmp.Or(cfg.Mux, http.NewServeMux()), out: out, open: cfg.Open, ready: cfg.Ready}
	audit := &auth.Audit{Store: cfg.Store.Audit, Proxy: cfg.Proxy, Log: log}
	tokens := &auth.Tokens{Store: cfg.Store.Tokens, Now: now}
	if h.guard, err = auth.New(auth.Config{
		Token: cfg.Token, Proxy: cfg.Proxy, Access: cfg.Access, Provider: cfg.Provider, Links: cfg.TaskLinks,
		Store: cfg.Store, Audit: audit, Tokens: tokens, Out: out, Now: now, Log: log,
	}); err != nil {
		return nil, err
	}
	if h.logs, err = logs.New(cfg.Desk, cfg.Store, cfg.LogDir, cfg.FleetToken, log); err != nil {
		return nil, err
	}
	h.view = &view.Reader{
		Desk: cfg.Desk, Store: cfg.Store, Inbound: cfg.Inbound, Notices: cfg.Notices, Config: cfg.Shown,
		Reviews: cfg.Reviews, Explain: explain, Now: now, Log: log,
	}
	h.console = console.New(console.Config{
		View: h.view, Logs: h.logs, Out: out, Audit: audit, Links: cfg.Links, Chat: cfg.Chat,
		Examine: cfg.Examine, Redis: cfg.Redis,
	}, h.mux)
	life, cancel := context.WithCancel(context.Background())
	h.cancel, h.close = cancel, sync.OnceValue(h.console.Close)
	(&api.API{
		View: h.view, Logs: h.logs, Out: out, Audit: audit, Tokens: tokens, Examine: cfg.Examine,
		Scheduler: cfg.Scheduler, Inbox: cfg.Inbox, Heartbeat: cmp.Or(cfg.Heartbeat, 15*time.Second), Life: life,
	}).Route(h.mux)
	(&mcpserver.Server{View: h.view, Logs: h.logs, Audit: audit, Poster: cfg.Chat.Source, Life: life}).Route(out, h.mux)
	h.route(cfg.Roles)
	h.public = h.guard.SameOrigin(h.mux)
	h.guarded = h.guard.SameOrigin(h.guard.Authenticated(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler, pattern := h.mux.Handler(r); pattern == "" {
			out.Unrouted(w, r, handler)
			return
		}
		h.mux.ServeHTTP(w, r)
	}), h.role))
	return h, nil
}

// route adds the routes of the handler itself, and the roles of those that sources have added or will add.
func (h *Handler) route(roles map[string]policy.Role) {
	h.out.Route(h.mux, map[string]respond.Route{
		"GET /livez":   respond.For(policy.Anyone, livez),
		"GET /readyz":  respond.For(policy.Anyone, h.readyz),
		"GET /static/": respond.For(policy.Anyone, static),
		"GET /login":   respond.For(policy.Anyone, h.guard.LoginPage),
		"POST /login":  respond.For(policy.Anyone, h.guard.Login),
		"POST /logout": respond.For(policy.Anyone, h.guard.Logout),

		"GET /login/start":    respond.For(policy.Anyone, h.guard.StartLogin),
		"GET /login/callback": respond.For(policy.Anyone, h.guard.Callback),
		"GET /link":           respond.For(policy.Anyone, h.guard.LinkPage),
		"POST /link":          respond.For(policy.Anyone, h.guard.ConfirmLink),
	})
	for pattern, role := range roles {
		h.out.Allow(pattern, role)
	}
}

// role returns the role that a request needs. A route without a role is closed; what is no route may be asked for by
// every visitor.
func (h *Handler) role(r *http.Request) (policy.Role, bool) {
	_, pattern := h.mux.Handler(r)
	if pattern == "" {
		return policy.Viewer, true
	}
	return h.out.Role(pattern)
}

// Close ends the open streams and closes the connections that the handler opened. Pass it to
// http.Server.RegisterOnShutdown: Shutdown would otherwise wait for the readers of streams. Close may be called more
// than once.
func (h *Handler) Close() error {
	h.cancel()
	h.logs.Close()
	return h.close()
}

// Invite returns a path that opens the console once, within 15 minutes.
func (h *Handler) Invite() (path string) { return h.guard.Invite() }

// ServeHTTP serves public routes to everyone and the rest to known visitors. A program that calls a source with the
// wrong method is told so, because it has no login. It decides by the pattern that will be served, not by the path, so
// that no spelling of a path reaches a handler that another spelling does not.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	respond.SetHeaders(w.Header())
	_, pattern := h.mux.Handler(r)
	role, declared := h.out.Role(pattern)
	switch {
	case h.signed(pattern):
		h.mux.ServeHTTP(w, r)
	case pattern == "" && h.signed(h.postPattern(r)): // such as a hook that is asked for with GET
		h.out.Unrouted(w, r, h.mux)
	case declared && role == policy.Anyone:
		h.public.ServeHTTP(w, r)
	default:
		h.guarded.ServeHTTP(w, r)
	}
}

// postPattern returns the pattern that would serve a request if its method were POST.
func (h *Handler) postPattern(r *http.Request) string {
	post := r.WithContext(r.Context())
	post.Method = http.MethodPost
	_, pattern := h.mux.Handler(post)
	return pattern
}

// signed reports whether a pattern of the mux belongs to a source that verifies a signature.
func (h *Handler) signed(pattern string) bool {
	_, path, ok := strings.Cut(pattern, "/") // after method and host
	return ok && slices.ContainsFunc(h.open, func(prefix string) bool { return strings.HasPrefix("/"+path, prefix) })
}

// readyz reports whether the process can do its work. It is public, so the reason names no address.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request) error {
	check := func(ask func(context.Context) error) error {
		_, err := view.Await(r.Context(), func(ctx context.Context) (struct{}, error) { return struct{}{}, ask(ctx) })
		return err
	}
	if err := check(h.view.Store.Ping); err != nil {
		what, _ := h.view.Explain(err)
		return writeText(w, http.StatusServiceUnavailable, what+"\n")
	}
	if h.ready != nil {
		if err := check(h.ready); err != nil {
			return writeText(w, http.StatusServiceUnavailable, err.Error()+"\n")
		}
	}
	return writeText(w, http.StatusOK, "ok\n")
}

func livez(w http.ResponseWriter, _ *http.Request) error { return writeText(w, http.StatusOK, "ok\n") }

func static(w http.ResponseWriter, r *http.Request) error {
	respond.Static.ServeHTTP(w, r)
	return nil
}

func writeText(w http.ResponseWriter, status int, s string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s) // the client may be gone
	return nil
}
