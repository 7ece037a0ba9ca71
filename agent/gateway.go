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
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// gateway is one run's way to the model: a reverse proxy on loopback that lets in who has the run's own token and puts the real
// credential in its place, so that neither the CLI nor a tool of it ever has that. Bodies pass untouched and at once; what the CLI
// keeps to itself of them is noted on the way (API).
//
// Loopback is no boundary: the tools of every run can connect. One that has found the token of its own run can ask the model for
// answers, as the run itself does, and no longer than the run lasts. Methods may be called from any goroutine; those of a nil
// gateway, that of a run that goes direct, do nothing.
type gateway struct {
	url, token string
	seen       traffic

	server *http.Server
	cut    context.CancelFunc // ends the context of every request
	open   sync.WaitGroup     // the goroutine that accepts, and one per connection
}

// routes are what a run needs of the model's API. The rest reaches farther than the run: batches outlive it, files are the account's.
var routes = []string{"POST /v1/messages", "POST /v1/messages/count_tokens"}

// maxConns keeps a tool that opens connections without end from using up the worker's descriptors. The CLI has one per question at a
// time, and asks few at once.
const maxConns = 64

// gated reports whether runs go through a gateway.
func (r *Runner) gated() bool { return !r.cfg.Direct && r.cfg.Credential != (Credential{}) }

// openGateway starts the gateway of a run; it is nil when runs go direct. note is told why the model could not be reached; it is called
// from any goroutine, and not after Close. That of a run that is alone listens once Serve is handed a socket.
func (r *Runner) openGateway(alone bool, note func(error)) (*gateway, error) {
	if !r.gated() {
		return nil, nil
	}
	g := r.newGateway(note)
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
func (r *Runner) newGateway(note func(error)) *gateway {
	ctx, cut := context.WithCancel(context.Background())
	// The prefix is that of the model's own keys, by which redactors know what must not be seen.
	g := &gateway{url: fmt.Sprintf("http://127.0.0.1:%d", gatewayPort), token: "sk-ant-run-" + rand.Text(), cut: cut}
	g.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(r.log.Handler(), slog.LevelDebug), // of clients that go away: the CLI says so itself
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew: // on the goroutine that accepts, so never after Close has begun to wait for nobody
				g.open.Add(1)
			case http.StateClosed:
				g.open.Done()
			}
		},
	}
	g.server.Handler = g.handler(r, observer{next: r.transport, seen: &g.seen, note: note})
	return g
}

// Serve lets the gateway answer on a listener, which it closes in the end.
func (g *gateway) Serve(l net.Listener) {
	g.open.Go(func() { _ = g.server.Serve(netutil.LimitListener(l, maxConns)) }) // always an error: that of Close
}

// handler asks for the token first, and knows only routes.
func (g *gateway) handler(r *Runner, transport http.RoundTripper) http.Handler {
	credential := r.cfg.Credential
	name, pass := credential.with(g.token).header()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(r.upstream)
			p.Out.Header.Set(credential.header())
			p.Out.Header.Set("Accept-Encoding", "identity") // the CLI offers four encodings; tokens are counted in plain text
			p.Out.Header.Del("Connection")                  // no change of protocol
			p.Out.Header.Del("Upgrade")
		},
		Transport:     transport,
		FlushInterval: -1, // at once
		ErrorLog:      g.server.ErrorLog,
		// A connection that breaks is what the CLI would see without us: it tries again, and in the end says so.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route, proxy)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if subtle.ConstantTimeCompare([]byte(req.Header.Get(name)), []byte(pass)) != 1 {
			http.Error(w, "this address serves one run, and takes only that run's token", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, req)
	})
}

// Close cuts the requests under way and returns when nothing of the gateway is left. It may be repeated.
func (g *gateway) Close() {
	if g == nil {
		return
	}
	g.cut()
	_ = g.server.Close()
	g.open.Wait()
}

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
