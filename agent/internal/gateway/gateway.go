// Package gateway gives each run its own way to the model: a reverse proxy on loopback that holds the model credential,
// so that neither the CLI nor its tools ever see it.
//
// A [Gateway] accepts only requests with its run's token, passes only questions to the models of the run, and stops
// when the run has spent its maximum. Request bodies and answers pass unchanged and without delay; the gateway counts
// what they cost on the way (see [API]).
//
// Loopback is not a trust boundary: the tools of every run can connect. A tool that finds the token of its own run can
// ask the model, as the run itself can, at the run's expense and for as long as the run lasts.
//
// An [Upstream] and the methods of a Gateway are safe for concurrent use. The methods of a nil *Gateway do nothing: it
// represents a run that asks the model directly.
package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/internal/connlimit"
)

// Gateway is the proxy of one run.
type Gateway struct {
	url, token string
	upstream   *Upstream
	lease      *lease
	seen       traffic
	models     []string // the run may ask these, guarded by seen.mu: see models

	note      func(format string, args ...any) // writes to the run's log
	over      context.Context                  // ends when a call is refused because the run has spent its maximum
	overspend context.CancelFunc

	server *http.Server
	conns  *connlimit.Limiter
	cut    context.CancelFunc // ends the context of every request
	open   sync.WaitGroup     // the goroutine that accepts, and one per connection
}

// Run describes the run that a Gateway serves.
type Run struct {
	Model  string                           // the model the run starts with; empty: the CLI's default
	MaxUSD float64                          // the run may spend this much; 0: any amount
	Addr   string                           // where the run finds the gateway; empty: on loopback
	Note   func(format string, args ...any) // writes to the run's log, from any goroutine, but not after Close

	Credentials []string // names of those that the run may use; nil: all, for a run without requests
}

const messagesPath = "/v1/messages"

// routes are the parts of the model's API that a run needs. The others outlive the run (batches) or belong to the whole
// account (files).
var routes = []string{"POST " + messagesPath, "POST " + messagesPath + "/count_tokens"}

// MaxConns limits the connections that have shown the run's token, and separately those that have not, so that tools
// cannot use up the worker's descriptors. The CLI uses one connection per question and asks few questions at once.
const MaxConns = 64

// Time limits of a connection. Clients are on the same machine and have no reason to be slow.
const (
	headerLimit = 5 * time.Second
	idleLimit   = time.Minute
)

// Open returns the gateway of a run, or nil if runs ask the model directly.
func (u *Upstream) Open(run Run) (*Gateway, error) {
	if !u.Gated() {
		return nil, nil
	}
	l, err := u.keys.take(run.Credentials)
	if err != nil {
		return nil, fmt.Errorf("open the gateway: %w", err)
	}
	g := u.newGateway(run, l)
	if run.Addr != "" {
		return g, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		g.Close()
		return nil, fmt.Errorf("open the gateway: %w", err)
	}
	g.url = "http://" + listener.Addr().String()
	g.Serve(listener)
	return g, nil
}

// newGateway returns a gateway that does not listen yet.
func (u *Upstream) newGateway(run Run, l *lease) *Gateway {
	ctx, cut := context.WithCancel(context.Background())
	g := &Gateway{
		url: "http://" + run.Addr, upstream: u, lease: l, cut: cut, note: run.Note,
		conns:  connlimit.New(MaxConns),
		models: l.key.models(run.Model, u.cfg.Models),
		seen:   traffic{max: run.MaxUSD, prices: l.key.Prices, api: API{Credential: l.key.Name}},
		token:  "sk-ant-run-" + rand.Text(), // with the prefix of the model's own keys, which redactors know
	}
	g.over, g.overspend = context.WithCancel(context.Background())
	g.server = &http.Server{
		ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		ErrorLog:    slog.NewLogLogger(u.cfg.Log.Handler(), slog.LevelDebug), // about clients that disconnect
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: g.conns.Enter,
		ConnState: func(c net.Conn, s http.ConnState) {
			g.conns.State(c, s)
			switch s {
			case http.StateNew: // on the goroutine that accepts, so never after Close has seen the counter at zero
				g.open.Add(1)
			case http.StateClosed:
				g.open.Done()
			}
		},
	}
	g.server.Handler = g.authenticated(g.routes())
	return g
}

// Serve answers on a listener, which the gateway closes at its end.
func (g *Gateway) Serve(l net.Listener) {
	g.open.Go(func() { _ = g.server.Serve(l) }) // the error is always that of Close
}

// routes handles requests that have shown the run's token.
func (g *Gateway) routes() http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			g.cleanHeader(p.Out.Header)
			if g.lease.key.Cloud != nil { // the credential decides where it goes
				cleanForCloud(p.Out)
				return
			}
			p.SetURL(g.upstream.url)
		},
		Transport:     observer{next: keyed{g}, seen: &g.seen, note: g.note},
		FlushInterval: -1, // at once
		ErrorLog:      g.server.ErrorLog,
		// Without the gateway the CLI would see a broken connection: it would retry, and report that in the end.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	if g.lease.key.Cloud != nil {
		return g.cloudRoutes(proxy)
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		free := !strings.HasSuffix(route, messagesPath) // counting tokens
		mux.HandleFunc(route, func(w http.ResponseWriter, req *http.Request) {
			g.ask(w, req, proxy, cloud.Question{Free: free})
		})
	}
	return mux
}

// authenticated checks the run's token before next.
func (g *Gateway) authenticated(next http.Handler) http.Handler {
	name, pass := g.lease.key.With(g.token).header()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		shown, expected := req.Header.Get(name), pass
		if g.lease.key.Cloud != nil {
			shown, expected = takeToken(req.URL), g.token
		}
		if subtle.ConstantTimeCompare([]byte(shown), []byte(expected)) != 1 {
			// clients without the token hold no connection, not even by a body that they do not send
			w.Header().Set("Connection", "close")
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			http.Error(w, "this address serves one run and accepts only the token of that run", http.StatusUnauthorized)
			return
		}
		done, ok := g.conns.Use(req.Context())
		if !ok {
			w.Header().Set("Connection", "close")
			apiError(w, http.StatusTooManyRequests, "rate_limit_error", "this run sends too many requests at once")
			return
		}
		defer done()
		next.ServeHTTP(w, req)
	})
}

// Close aborts the requests under way and returns when all goroutines of the gateway have ended. It may be called
// again.
func (g *Gateway) Close() {
	if g == nil {
		return
	}
	g.cut()
	_ = g.server.Close()
	g.open.Wait()
	g.lease.end()
}

// OnOverspent arranges that f is called on its own goroutine once a call is refused because the run has spent its
// maximum.
func (g *Gateway) OnOverspent(f func()) {
	if g != nil {
		context.AfterFunc(g.over, f)
	}
}

// Overspent reports whether a call was refused because the run has spent its maximum.
func (g *Gateway) Overspent() bool { return g != nil && g.over.Err() != nil }

// Seen returns what the gateway has seen so far, or nil if runs ask the model directly.
func (g *Gateway) Seen() *API {
	if g == nil {
		return nil
	}
	return g.seen.copy()
}

// Credential authenticates requests to the model. The first field that is set is used. Unless runs ask the model
// directly, the CLI gets the token of its gateway instead, in the same way.
type Credential struct {
	APIKey     string // handed to the CLI through a pipe: it is not in its environment
	OAuthToken string // likewise
	AuthToken  string // a bearer token; the CLI takes it from its environment only, where tools can see it
}

// With returns a credential of the same kind with another value.
func (c Credential) With(value string) Credential {
	switch {
	case c.APIKey != "":
		return Credential{APIKey: value}
	case c.OAuthToken != "":
		return Credential{OAuthToken: value}
	case c.AuthToken != "":
		return Credential{AuthToken: value}
	}
	return Credential{}
}

// header returns the header of a request to the model.
func (c Credential) header() (name, value string) {
	if c.APIKey != "" {
		return "X-Api-Key", c.APIKey
	}
	return "Authorization", "Bearer " + cmp.Or(c.OAuthToken, c.AuthToken)
}

// credentialFD is the descriptor at which the keeper leaves the credential for the CLI.
const credentialFD = "3"

// Variable returns the environment variable by which the CLI finds the credential.
func (c Credential) Variable() (name, value string) {
	switch {
	case c.APIKey != "":
		return "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", credentialFD
	case c.OAuthToken != "":
		return "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", credentialFD
	case c.AuthToken != "":
		return "ANTHROPIC_AUTH_TOKEN", c.AuthToken
	}
	return "", ""
}

// Piped returns the secret that the CLI reads from a pipe; empty if all secrets are in its environment.
func (c Credential) Piped() string { return cmp.Or(c.APIKey, c.OAuthToken) }

// betas are the values of anthropic-beta that may pass: those that the pinned CLI (2.1.332) sends with a run's own
// requests. Values are left out that make an answer more expensive or let another model into it (fast mode, advisors,
// fallbacks on the server), and values that reach beyond the run (files, batches, remote MCP servers, managed agents).
// TestCLIModelsAndBetas checks that the list covers what the CLI sends.
var betas = []string{
	"afk-mode-2026-01-31", "advanced-tool-use-2025-11-20", "auto-mode-classifier-2026-07-16",
	"cache-diagnosis-2026-04-07", "claude-code-20250219", "claude-code-side-query-2026-09-29", "context-1m-2025-08-07",
	"context-hint-2026-04-09", "context-management-2025-06-27", "dangerous-tool-use-2026-09-03", "effort-2025-11-24",
	"extended-cache-ttl-2025-04-11", "inline-tools-2026-09-15", "interleaved-thinking-2025-05-14",
	"message-threads-2026-08-12", "mid-conversation-system-2026-04-07", "mid-conversation-system-clear-at-2026-08-21",
	"mid-conversation-tool-changes-2026-07-01", "oauth-2025-04-20", "per-turn-control-2026-07-01",
	"prompt-caching-evict-2026-05-12", "prompt-caching-scope-2026-01-05", "redact-thinking-2026-02-12",
	"resumption-2026-10-08", "structured-outputs-2025-12-15", "task-budgets-2026-03-13",
	"thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18", "thinking-resumption-2026-07-17",
	"thinking-token-count-2026-05-13", "timing-2026-09-09", "token-counting-2024-11-01", "tool-search-tool-2025-10-19",
	"web-search-2025-03-05", "web-search-results-only-2026-11-15",
}

// apiHeaders are the headers of the model's API that may pass.
var apiHeaders = []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"}

// cleanHeader removes from a request everything that could charge another account or change the protocol: further
// credentials, headers that choose an account or a workspace, and unknown beta values. The answers to such requests
// would count against the fleet's credential.
func (g *Gateway) cleanHeader(h http.Header) {
	for name := range h {
		switch {
		case name == "Authorization", name == "X-Api-Key", name == "Cookie", name == "Proxy-Authorization",
			name == "Connection", name == "Upgrade",
			strings.HasPrefix(name, "Anthropic-") && !slices.Contains(apiHeaders, name):
			h.Del(name)
		}
	}
	h.Set("Accept-Encoding", "identity") // the CLI offers four encodings; tokens are counted in plain text
	g.cleanBetas(h)
}

// cleanBetas removes unknown beta values, and notes each of them once.
func (g *Gateway) cleanBetas(h http.Header) {
	var kept []string
	for _, values := range h.Values("Anthropic-Beta") {
		for value := range strings.SplitSeq(values, ",") {
			switch value = strings.TrimSpace(value); {
			case slices.Contains(betas, value):
				kept = append(kept, value)
			case value != "" && g.seen.noteOnce("beta "+value):
				g.note("the gateway drops the unknown beta header %s", redact.Clip(value, 100))
			}
		}
	}
	h.Del("Anthropic-Beta")
	if len(kept) > 0 {
		h.Set("Anthropic-Beta", strings.Join(kept, ","))
	}
}
