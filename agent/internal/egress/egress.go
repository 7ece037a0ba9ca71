// Package egress gives a run with its own network a way to other hosts: an HTTP proxy that connects only to the hosts
// of a list.
//
// A [Proxy] serves tunnels (CONNECT) and plain requests (absolute-form http). It resolves names itself and refuses
// private addresses, checked at the moment of the connection, so that a name cannot change its address in between. In a
// tunnel to port 443 the first bytes must be the beginning of a TLS handshake for the same host. The proxy does not
// terminate TLS, so it limits which hosts a run reaches, not what it says to them.
//
// The proxy needs no credential: it listens in the run's own network, which no other process can reach. A [Network] and
// the methods of a Proxy are safe for concurrent use. The methods of a nil *Proxy do nothing: it represents a run that
// reaches no other host, or shares the network of the machine.
package egress

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/internal/connlimit"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// Config says how the worker itself reaches other hosts.
type Config struct {
	Getenv   func(string) string // of the worker; all connections use the proxy in HTTPS_PROXY and similar
	Log      *slog.Logger
	Resolver *net.Resolver         // nil: the system's
	Public   func(netip.Addr) bool // addresses that any host of a list may have; nil: Public
}

// Network is the worker's way to other hosts, which all runs share.
type Network struct {
	cfg     Config
	chained *http.Transport // for plain requests through the worker's own proxy
	buffers buffers

	registries *http.Transport // to the registries of runs
	authority  authority       // of the certificates that runs see in their place
}

// proxy returns the worker's own proxy for a host, or nil.
func (n *Network) proxy(scheme, address string) (*url.URL, error) {
	return n.chained.Proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: address}})
}

// buffers are what bodies of plain requests are copied with. They are larger than usual, because each costs two system
// calls.
type buffers struct{ sync.Pool }

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if used, ok := b.Pool.Get().(*[]byte); ok {
		return *used
	}
	return make([]byte, 256<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(used []byte) { b.Pool.Put(&used) }

// NewNetwork returns a Network.
func NewNetwork(cfg Config) *Network {
	n := &Network{cfg: cfg}
	var err error
	if cfg.Public == nil {
		n.cfg.Public = Public
	}
	n.chained = newTransport((&net.Dialer{Timeout: dialLimit}).DialContext)
	n.registries, err = gateway.NewTransport(cfg.Getenv)
	if err != nil {
		cfg.Log.Warn("certificates for registries are left out", "err", err)
	}
	n.registries.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return n.dial(ctx, host, port, true) // the operator names registries
	}
	n.chained.Proxy = n.registries.Proxy
	return n
}

func newTransport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext: dial, MaxIdleConnsPerHost: 8, IdleConnTimeout: idleLimit, ResponseHeaderTimeout: headersLimit,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // bodies pass unchanged
	}
}

// MaxConns limits the connections in use of a run, and separately those that have not sent a request. Package managers
// open some dozens.
const MaxConns = 128

// Time limits and sizes.
const (
	headerLimit  = 10 * time.Second // for the header of a request, and for the first TLS message in a tunnel
	headersLimit = 5 * time.Minute  // for the header of a response
	idleLimit    = 5 * time.Minute
	dialLimit    = 30 * time.Second
	maxHeader    = 64 << 10
)

// errNotPublic says that a host has only private addresses.
var errNotPublic = errors.New("private address")

// Proxy is the proxy of one run.
type Proxy struct {
	network *Network
	rules   atomic.Pointer[Rules]
	note    func(format string, args ...any)

	server *http.Server
	conns  *connlimit.Limiter
	direct *http.Transport // for plain requests; of this run only, because other runs have other rules
	over   context.Context // ends with Close
	cut    context.CancelFunc
	open   sync.WaitGroup // the goroutines that accept, and one per connection

	mu     sync.Mutex
	report Report
}

// Open returns the proxy of a run. It refuses everything until [Proxy.Begin]. It calls note for the run's log, from any
// goroutine, but not after Close.
func (n *Network) Open(note func(format string, args ...any)) *Proxy {
	p := &Proxy{network: n, note: note, conns: connlimit.New(MaxConns)}
	p.over, p.cut = context.WithCancel(context.Background())
	p.direct = newTransport(func(ctx context.Context, _, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		_, private := p.rules.Load().Allows(host, port, false)
		return n.dial(ctx, host, port, private)
	})
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(n.cfg.Log.Handler(), slog.LevelDebug), // about clients that go away
		BaseContext:    func(net.Listener) context.Context { return p.over },
		ConnContext:    p.conns.Enter,
		ConnState: func(c net.Conn, s http.ConnState) {
			p.conns.State(c, s)
			switch s {
			case http.StateNew: // on the goroutine that accepts, so never after Close has seen the counter at zero
				p.open.Add(1)
			case http.StateClosed: // a tunnel's connection is hijacked instead
				p.open.Done()
			}
		},
	}
	return p
}

// Rules say what a run may reach.
type Rules struct {
	hostlist.List

	Registries []Registry // are allowed too, at any address
}

// Begin lets the run reach what rules allow.
func (p *Proxy) Begin(rules Rules) {
	if p != nil {
		p.rules.Store(&rules)
	}
}

// Serve answers on a listener, which the proxy closes at its end.
func (p *Proxy) Serve(l net.Listener) {
	p.open.Go(func() { _ = p.server.Serve(l) }) // the error is always that of Close
}

// Close closes all connections and returns when all goroutines of the proxy have ended. It may be called again.
func (p *Proxy) Close() {
	if p == nil {
		return
	}
	p.cut()
	_ = p.server.Close()
	p.direct.CloseIdleConnections()
	p.open.Wait()
}

func (p *Proxy) serve(w http.ResponseWriter, req *http.Request) {
	rules := p.rules.Load()
	if rules == nil {
		w.Header().Set("Connection", "close")
		http.Error(w, "errand: the run of this address has not begun", http.StatusForbidden)
		return
	}
	done, ok := p.conns.Use(req.Context())
	if !ok {
		w.Header().Set("Connection", "close")
		http.Error(w, fmt.Sprintf("errand: this run has more than %d connections", MaxConns),
			http.StatusServiceUnavailable)
		return
	}
	defer done()
	if req.Method == http.MethodConnect {
		p.tunnel(w, req, rules)
	} else {
		p.forward(w, req, rules)
	}
}

// refuse answers a request that must not pass.
func (p *Proxy) refuse(w http.ResponseWriter, host, why string) {
	p.refused(host, why)
	w.Header().Set("Connection", "close")
	text := fmt.Sprintf("errand refuses a connection to %s, %s (docs/environment.md)", redact.Clip(host, 300), why)
	http.Error(w, text, http.StatusForbidden)
}

// forward passes a plain request to its host.
func (p *Proxy) forward(w http.ResponseWriter, req *http.Request, rules *Rules) {
	u := req.URL
	if u.Scheme != "http" || u.Host == "" || u.User != nil {
		w.Header().Set("Connection", "close")
		http.Error(w, "errand: this is a proxy for CONNECT and for http:// addresses without a user",
			http.StatusBadRequest)
		return
	}
	name, ok := hostlist.Normalize(u.Hostname())
	if !ok {
		p.refuse(w, fmt.Sprintf("%q", u.Host), notHostPort)
		return
	}
	t := target{name, cmp.Or(u.Port(), "80")}
	if ok, _ := rules.Allows(t.host, t.port, false); !ok {
		p.refuse(w, t.String(), notListed)
		return
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Host, r.Out.Host = t.address(), t.String()
			r.Out.Header.Del("Upgrade") // a tunnel is for that
			r.Out.Header.Del("Connection")
		},
		Transport: p.transport(t), BufferPool: &p.network.buffers, FlushInterval: -1, ErrorLog: p.server.ErrorLog,
		ModifyResponse: func(*http.Response) error { p.reached(t); return nil },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, errNotPublic) {
				p.refuse(w, t.String(), notPublic)
				return
			}
			unreachable(w, t, err)
		},
	}
	proxy.ServeHTTP(w, req)
}

// transport returns how plain requests to t are sent. It decides by the name that is connected to, in one spelling.
func (p *Proxy) transport(t target) http.RoundTripper {
	if via, err := p.network.proxy("http", t.address()); err == nil && via == nil {
		return p.direct
	}
	return p.network.chained
}

func unreachable(w http.ResponseWriter, t target, err error) {
	http.Error(w, fmt.Sprintf("errand: %s cannot be reached: %v", t, err), http.StatusBadGateway)
}

// tunnel connects a client to a host.
func (p *Proxy) tunnel(w http.ResponseWriter, req *http.Request, rules *Rules) {
	t, ok := parseTarget(req.RequestURI)
	if !ok {
		p.refuse(w, fmt.Sprintf("%q", req.RequestURI), notHostPort)
		return
	}
	if reg := rules.registry(t); reg != nil {
		p.serveTunnel(w, func(client net.Conn, early []byte) {
			_ = client.SetDeadline(time.Time{}) // the server has its own
			p.terminate(&beginning{client, io.MultiReader(bytes.NewReader(early), client)}, t, reg)
		})
		return
	}
	allowed, private := rules.Allows(t.host, t.port, true)
	if !allowed {
		p.refuse(w, t.String(), notListed)
		return
	}
	server, err := p.network.connect(req.Context(), t, private)
	if errors.Is(err, errNotPublic) {
		p.refuse(w, t.String(), notPublic)
		return
	}
	if err != nil {
		unreachable(w, t, err)
		return
	}
	defer server.Close()
	defer context.AfterFunc(p.over, func() { _ = server.Close() })()
	p.serveTunnel(w, func(client net.Conn, early []byte) {
		if t.port == "443" {
			var ok bool
			if early, ok = readHello(early, client, t.host); !ok {
				if len(early) > 0 {
					p.refused(t.String(), wrongName)
				}
				return
			}
		}
		if _, err := server.Write(early); err != nil {
			return
		}
		p.reached(t)
		_ = client.SetDeadline(time.Time{})
		join(client, server)
	})
}

// serveTunnel takes the connection of a CONNECT request over from the server and passes it to serve, with what the
// client has sent early. The connection has a deadline.
func (p *Proxy) serveTunnel(w http.ResponseWriter, serve func(client net.Conn, early []byte)) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.open.Done()
	defer client.Close()
	defer context.AfterFunc(p.over, func() { _ = client.Close() })()
	_ = client.SetDeadline(time.Now().Add(headerLimit))
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	early := make([]byte, buffered.Reader.Buffered()) // sent before the answer
	if _, err := io.ReadFull(buffered, early); err == nil {
		serve(client, early)
	}
}
