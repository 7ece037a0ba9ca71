package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/hibiken/asynqmon"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Config is what the console needs. Token, Desk, Store and Redis are required.
type Config struct {
	Token  string             // opens everything; printable ASCII without space, quotes, comma, semicolon and backslash
	Desk   *tasks.Desk        // for all that is asked about tasks
	Store  *store.Store       // for the workers, and for whether Redis answers
	Redis  asynq.RedisConnOpt // for asynqmon, which opens connections of its own
	Proxy  Proxy              // opens everything as well, to people who have logged in there
	LogDir string             // where the logs of this machine's runs are; empty: none are here

	// FleetToken opens the logs of other machines, at the addresses that workers tell (LogServer); empty: they are not asked.
	FleetToken string

	// QueuesWritable lets the pages of the queues do what asynqmon can, and not only show.
	QueuesWritable bool

	// Chat is what the chat page does.
	Chat Chat
	// Inbound are sources whose events the health tells of.
	Inbound []Inbound
	// Notices are about the configuration of this process.
	Notices []store.Finding
	// Examine asks the services of the sources how they are set up; nil: there are none.
	Examine func(context.Context) []store.Finding
	// Mux has, or will have, the routes of the sources; ours are added to it. A nil Mux is an empty one.
	Mux *http.ServeMux
	// Open are the beginnings of patterns on Mux that need no token because they check a signature, such as "/slack/".
	Open []string
	// Ready tells what else has to work for this process to do its part, in words for everyone; nil: Redis is all.
	Ready func(context.Context) error

	Heartbeat time.Duration // between two comments that keep a silent stream open; 0: 15 s
	Log       *slog.Logger  // nil: silence
}

// Handler serves the console. Make it with New and close it when the server shuts down.
type Handler struct {
	cfg     Config
	mux     *http.ServeMux
	guarded http.Handler
	queues  *asynqmon.HTTPHandler
	pages   pages
	log     *slog.Logger
	now     func() time.Time
	invites invites
	host    string        // this machine
	remote  *http.Client  // for workers
	making  chan struct{} // has one for each page with a timeline that is being made

	life context.Context // until Close; the streams end with it
	shut context.CancelFunc
	once sync.Once // of Close
	err  error     // its result
}

// New makes the handler and adds its routes to cfg.Mux. It talks to nobody yet.
func New(cfg Config) (*Handler, error) {
	switch {
	case cfg.Desk == nil || cfg.Store == nil || cfg.Redis == nil:
		return nil, errors.New("web: desk, store and Redis are required")
	case cfg.Token == "":
		return nil, errors.New("web: no token, and without one everybody could come in")
	case strings.ContainsFunc(cfg.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\",;\\", r) }):
		return nil, errors.New("web: the token has a character that a cookie cannot carry: use letters, digits, dash and underscore")
	case slices.ContainsFunc(cfg.Open, func(p string) bool { return len(p) < 3 || p[0] != '/' || p[len(p)-1] != '/' }):
		return nil, fmt.Errorf("web: open are whole subtrees such as /slack/, not %q", cfg.Open)
	}
	if cfg.Mux == nil {
		cfg.Mux = http.NewServeMux()
	}
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 15*time.Second)
	pages, err := loadPages()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	h := &Handler{
		host: host, remote: newRemote(), making: make(chan struct{}, maxMade),
		cfg: cfg, mux: cfg.Mux, pages: pages, queues: newQueues(cfg),
		log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)), now: time.Now,
	}
	h.life, h.shut = context.WithCancel(context.Background())
	h.routes()
	h.guarded = h.protect(h.guard(http.HandlerFunc(h.serve)))
	return h, nil
}

// Close ends the streams that are open and the connections to Redis that New opened. It is meant for http.Server.RegisterOnShutdown:
// without it, Shutdown waits for readers that may stay for hours. It may be called again.
func (h *Handler) Close() error {
	h.once.Do(func() {
		h.shut()
		h.remote.CloseIdleConnections()
		h.err = h.queues.Close()
	})
	return h.err
}

func (h *Handler) routes() {
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /livez":  h.livez,
		"GET /readyz": h.readyz,
		"GET /login":  h.loginPage,
		"POST /login": h.login,

		"GET /{$}":                h.listPage,
		"GET /health":             h.healthPage,
		"GET /costs":              h.costsPage,
		"GET /chat":               h.chatPage,
		"POST /chat":              h.chatForm,
		"GET /chat/{thread}":      h.chatPage,
		"GET /tasks/{id}":         h.taskPage,
		"GET /tasks/{id}/log":     h.logPage,
		"POST /tasks/{id}/cancel": h.cancelForm,
		"POST /tasks/{id}/retry":  h.retryForm,
		"POST /tasks/{id}/answer": h.answerForm,
		"POST /format":            h.format,
		"GET /static/":            http.FileServerFS(staticFiles).ServeHTTP,
		"/queues/":                h.serveQueues,
		"GET /queues/tasks/{id}":  h.deliveredTask,

		"GET /api/tasks":              h.list,
		"GET /api/tasks/{id}":         h.get,
		"GET /api/tasks/{id}/events":  h.events,
		"GET /api/tasks/{id}/log":     h.taskLog,
		"POST /api/tasks/{id}/cancel": h.cancel,
		"POST /api/tasks/{id}/retry":  h.retry,
		"POST /api/tasks/{id}/answer": h.answer,
		"GET /api/costs":              h.costs,
		"GET /api/agents":             h.agents,
		"GET /api/health":             h.health,
		"GET /api/openapi.yaml":       h.describe,
		"GET /api/health/services":    h.services,
	} {
		h.mux.HandleFunc(pattern, handle)
	}
	if h.cfg.QueuesWritable {
		h.cancelRoutes()
	}
}

// ServeHTTP lets in what is open, and the rest after it has shown the token. It goes by the pattern that will be served, not by the
// path, so that no spelling of a path leads to a handler that another spelling would have kept closed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	if _, pattern := h.mux.Handler(r); h.open(pattern) {
		h.mux.ServeHTTP(w, r)
		return
	}
	h.guarded.ServeHTTP(w, r)
}

// serve answers what came past the guard.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if handler, pattern := h.mux.Handler(r); pattern == "" {
		h.unrouted(w, r, handler)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// setHeaders keeps pages from doing anything that is not ours to do. Handlers that need more say so.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	// Not no-referrer: a browser then sends "Origin: null" with our own forms, which looks like another site.
	h.Set("Referrer-Policy", "same-origin")
}
