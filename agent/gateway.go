package agent

import (
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

	"github.com/errand-fleet/errand/internal/connlimit"
)

// gateway is one run's way to the model: a reverse proxy on loopback that lets in who has the run's own token and puts the real
// credential in its place, so that neither the CLI nor a tool of it ever has that. It passes questions to the run's models alone, until the
// run has spent its maximum. Bodies pass untouched, answers at once; what they cost is counted on the way (API).
//
// Loopback is no boundary: the tools of every run can connect. One that has found the token of its own run can ask the model for
// answers, as the run itself does, on the run's bill and no longer than the run lasts. Methods may be called from any goroutine; those of a nil
// gateway, that of a run that goes direct, do nothing.
type gateway struct {
	url, token string
	host       string // of the model, for people
	seen       traffic
	models     []string // that the run may ask, guarded by seen.mu: see models

	note      func(format string, args ...any) // writes to the run's log
	over      context.Context                  // ends when a call was refused because the run had spent its maximum
	overspend context.CancelFunc

	server *http.Server
	conns  *connlimit.Limiter
	cut    context.CancelFunc // ends the context of every request
	open   sync.WaitGroup     // the goroutine that accepts, and one per connection
}

// messagesPath is where the model is asked.
const messagesPath = "/v1/messages"

// routes are what a run needs of the model's API. The rest reaches farther than the run: batches outlive it, files are the account's.
var routes = []string{"POST " + messagesPath, "POST " + messagesPath + "/count_tokens"}

// maxConns keeps tools that open connections without end from using up the worker's descriptors: of those that have shown the run's token, and
// of the others. The CLI has one per question at a time, and asks few at once.
const maxConns = 64

// Time limits of a connection to a gateway. Who is on the same machine has no reason to be slow.
const (
	gatewayHeaderLimit = 5 * time.Second
	gatewayIdleLimit   = time.Minute
)

// gated reports whether runs go through a gateway.
func (r *Runner) gated() bool { return !r.cfg.Direct && r.cfg.Credential != (Credential{}) }

// openGateway starts the gateway of a run; it is nil when runs go direct. note writes to the run's log, from any goroutine, and not after
// Close. That of a run that is alone listens once Serve is handed a socket.
func (r *Runner) openGateway(s Spec, alone bool, note func(format string, args ...any)) (*gateway, error) {
	if !r.gated() {
		return nil, nil
	}
	g := r.newGateway(s, note)
	if alone {
		return g, nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		g.Close()
		return nil, fmt.Errorf("open the gateway: %w", err)
	}
	g.url = "http://" + l.Addr().String()
	g.Serve(l)
	return g, nil
}

// newGateway is a gateway that does not listen yet, at its address in the network of a run that is alone.
func (r *Runner) newGateway(s Spec, note func(format string, args ...any)) *gateway {
	ctx, cut := context.WithCancel(context.Background())
	// The prefix is that of the model's own keys, by which redactors know what must not be seen.
	g := &gateway{
		url: fmt.Sprintf("http://127.0.0.1:%d", gatewayPort), token: "sk-ant-run-" + rand.Text(), host: r.upstream.Host, cut: cut,
		note: note, conns: connlimit.New(maxConns), models: models(s.Model, r.cfg.Models), seen: traffic{max: s.MaxUSD},
	}
	g.over, g.overspend = context.WithCancel(context.Background())
	g.server = &http.Server{
		ReadHeaderTimeout: gatewayHeaderLimit, IdleTimeout: gatewayIdleLimit,
		ErrorLog:    slog.NewLogLogger(r.log.Handler(), slog.LevelDebug), // of clients that go away: the CLI says so itself
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: g.conns.Enter,
		ConnState: func(c net.Conn, s http.ConnState) {
			g.conns.State(c, s)
			switch s {
			case http.StateNew: // on the goroutine that accepts, so never after Close has begun to wait for nobody
				g.open.Add(1)
			case http.StateClosed:
				g.open.Done()
			}
		},
	}
	g.server.Handler = g.handler(r, observer{next: r.transport, seen: &g.seen, note: func(err error) { note("the model cannot be reached: %v", err) }})
	return g
}

// Serve lets the gateway answer on a listener, which it closes in the end.
func (g *gateway) Serve(l net.Listener) {
	g.open.Go(func() { _ = g.server.Serve(l) }) // always an error: that of Close
}

// handler asks for the token first, and knows only routes.
func (g *gateway) handler(r *Runner, transport http.RoundTripper) http.Handler {
	credential := r.cfg.Credential
	name, pass := credential.with(g.token).header()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(r.upstream)
			onlyOurs(p.Out.Header)
			p.Out.Header.Set(credential.header())
			p.Out.Header.Set("Accept-Encoding", "identity") // the CLI offers four encodings; tokens are counted in plain text
			p.Out.Header.Del("Connection")                  // no change of protocol
			p.Out.Header.Del("Upgrade")
			g.trim(p.Out.Header)
		},
		Transport:     transport,
		FlushInterval: -1, // at once
		ErrorLog:      g.server.ErrorLog,
		// A connection that breaks is what the CLI would see without us: it tries again, and in the end says so.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route, func(w http.ResponseWriter, req *http.Request) { g.ask(w, req, proxy) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if subtle.ConstantTimeCompare([]byte(req.Header.Get(name)), []byte(pass)) != 1 {
			w.Header().Set("Connection", "close")                         // a sender without the token holds nothing here,
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // nor by a body that does not come
			http.Error(w, "this address serves one run, and takes only that run's token", http.StatusUnauthorized)
			return
		}
		done, ok := g.conns.Use(req.Context())
		if !ok {
			w.Header().Set("Connection", "close")
			apiError(w, http.StatusTooManyRequests, "rate_limit_error", "this run asks too much at once")
			return
		}
		defer done()
		mux.ServeHTTP(w, req)
	})
}

// onlyOurs takes out of a request what would make it somebody else's: further credentials, and headers that choose an account. The answers to
// those would bind the fleet's own credential.
func onlyOurs(h http.Header) {
	for name := range h {
		switch {
		case name == "Authorization", name == "X-Api-Key", name == "Cookie", name == "Proxy-Authorization":
			h.Del(name)
		case strings.HasPrefix(name, "Anthropic-") && !slices.Contains(passing, name):
			h.Del(name)
		}
	}
}

// passing are the headers of the API's own that the CLI sends.
var passing = []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"}

// Close cuts the requests under way and returns when nothing of the gateway is left. It may be repeated.
func (g *gateway) Close() {
	if g == nil {
		return
	}
	g.cut()
	_ = g.server.Close()
	g.open.Wait()
}

// Overspent reports whether a call was refused because the run had spent its maximum.
func (g *gateway) Overspent() bool { return g != nil && g.over.Err() != nil }

// Seen is what has been seen so far; nil when runs go direct.
func (g *gateway) Seen() *API {
	if g == nil {
		return nil
	}
	return g.seen.copy()
}

// access is how the CLI gets to the model.
type access struct {
	BaseURL    string // empty: the CLI's default
	Credential Credential
}

// access hands the CLI a credential of the same kind either way, so that it behaves the same. At the gateway's address it does take the
// model for somebody else's and leaves out what only the model's own address offers. _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL would
// change that, but makes the CLI ask api.anthropic.com itself, past the gateway and with a token nobody knows there.
func (r *Runner) access(g *gateway) access {
	if g == nil {
		return access{r.cfg.BaseURL, r.cfg.Credential}
	}
	return access{g.url, r.cfg.Credential.with(g.token)}
}
