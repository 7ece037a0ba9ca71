package workspace

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/errand-fleet/errand/internal/connlimit"
)

// gate is a loopback proxy between one git process and its remote. It adds the credential to the requests, so that git
// never has it: every process of the same user can read the environment, arguments, pipes and memory of git.
//
// Such a process can also read the gate's address and use it while that git lives. So a gate accepts only what its git
// needs: to read this one repository, whose mirror that process can read anyway, or to make the one change that is
// being pushed.
type gate struct {
	path    string  // "/" and a random token
	service string  // git-upload-pack or git-receive-pack
	change  *update // the only change that may be pushed; nil: none
	auth    string  // the Authorization header of the remote
	client  *http.Client
	conns   *connlimit.Limiter

	mu   sync.Mutex
	base *url.URL // of the repository, after a redirect
	open bool     // the credential may be sent to base
	err  error    // why the remote could not be reached
}

// update is one change of a branch, from a commit (empty if the branch is new) to another.
type update struct{ from, to, ref string }

// gateConns bounds the connections to a gate that have not shown its token, and separately those that have. A git
// needs one or two.
const gateConns = 256

// gated reports whether a remote accepts a credential by HTTP. For all others git connects directly, without a
// credential.
func (r remote) gated() (*url.URL, bool) {
	u, err := url.Parse(r.url)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && r.username+r.password != ""
}

// remotely runs a git that talks to r, through a separate gate if r accepts a credential.
func (g git) remotely(ctx context.Context, r remote, args ...string) (string, error) {
	g = g.accepting()
	u, gated := r.gated()
	if !gated {
		return g.run(ctx, args...)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("open a gate for git: %w", err)
	}
	p := newGate(u, r)
	server := p.server()
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	// With a name and a password, git distinguishes a refused credential from a missing one. They open nothing.
	host := l.Addr().String() + p.path
	g = g.configured("url.http://gate:-@"+host+".insteadOf="+r.url, "http.proxy=")
	g.secret = r.password
	out, err := g.run(ctx, args...)
	if ge, ok := errors.AsType[*gitError](err); ok {
		p.explain(ge, r.url, "http://"+host, "http://gate:-@"+host)
	}
	return out, err
}

// newGate returns a gate to a remote with the address u.
func newGate(u *url.URL, r remote) *gate {
	p := &gate{
		path: "/" + rand.Text(), service: "git-upload-pack", change: r.change, auth: basic(r.username, r.password),
		client: &http.Client{Transport: r.transport, CheckRedirect: sameOrigin}, conns: connlimit.New(gateConns),
		base: u, open: true,
	}
	if r.change != nil {
		p.service = "git-receive-pack"
	}
	return p
}

// server returns the gate's HTTP server. It keeps connections of other processes from occupying places for long or
// taking git's places.
func (p *gate) server() *http.Server {
	return &http.Server{
		Handler: p, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: p.conns.Enter, ConnState: p.conns.State,
	}
}

// explain replaces the gate's address by the remote's in an error, and adds why the remote was unreachable, which git
// does not know.
func (p *gate) explain(e *gitError, remote string, addresses ...string) {
	for _, address := range addresses {
		e.stderr = strings.ReplaceAll(e.stderr, address, remote)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		e.stderr = fmt.Sprintf("fatal: unable to access '%s': %v\n%s", remote, p.err, e.stderr)
	}
}

// basic returns an Authorization header.
func basic(username, password string) string {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(username, password)
	return req.Header.Get("Authorization")
}

// ServeHTTP forwards the requests that its git needs, and nothing else. A connection without the token takes no place
// of git's and is closed after the refusal.
func (p *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i := min(len(r.URL.Path), len(p.path))
	if subtle.ConstantTimeCompare([]byte(r.URL.Path[:i]), []byte(p.path)) != 1 {
		refuse(w, "This address serves only one git command.", http.StatusNotFound)
		return
	}
	done, ok := p.conns.Use(r.Context())
	if !ok {
		refuse(w, "Too many requests at once.", http.StatusServiceUnavailable)
		return
	}
	defer done()
	switch what := r.URL.Path[i:]; {
	case r.Method == http.MethodGet && what == "/info/refs" && r.URL.RawQuery == "service="+p.service:
	case r.Method == http.MethodPost && what == "/"+p.service && r.URL.RawQuery == "":
		body := bufio.NewReader(r.Body)
		if p.change != nil && (r.Header.Get("Content-Encoding") != "" || !p.change.alone(body)) {
			refuse(w, "This is another push.", http.StatusForbidden)
			return
		}
		r.Body = io.NopCloser(body)
	default:
		refuse(w, "This git has nothing else to ask.", http.StatusNotFound)
		return
	}
	proxy := httputil.ReverseProxy{
		Rewrite:   func(pr *httputil.ProxyRequest) { p.rewrite(pr.Out, r.URL.Path[i:]) },
		Transport: roundTrip(p.send), FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		ModifyResponse: p.judge,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// refuse replies with an error and closes the connection without reading the body.
func refuse(w http.ResponseWriter, why string, status int) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	http.Error(w, why, status)
}

// rewrite turns git's request into one for the remote.
func (p *gate) rewrite(req *http.Request, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := *p.base
	u.Path, u.RawPath, u.RawQuery = strings.TrimSuffix(u.Path, "/")+what, "", req.URL.RawQuery
	req.URL, req.Host, req.RequestURI = &u, "", ""
	req.Header.Del("Authorization")
	if p.open {
		req.Header.Set("Authorization", p.auth)
	}
}

// send sends a request to the remote. If the first one is redirected, for example because the repository was renamed,
// later ones go to the new address.
func (p *gate) send(req *http.Request) (*http.Response, error) {
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which is the caller's to name
	}
	at := *resp.Request.URL
	path, found := strings.CutSuffix(at.Path, "/info/refs")
	if found && resp.StatusCode == http.StatusOK {
		at.Path, at.RawPath, at.RawQuery = path, "", ""
		p.mu.Lock()
		p.base, p.open = &at, resp.Request.Header.Get("Authorization") != ""
		p.mu.Unlock()
	}
	return resp, nil
}

// judge keeps an answer from being taken for one to the credential: 401 to a request that had none is how a host hides
// a repository.
func (p *gate) judge(resp *http.Response) error {
	resp.Header.Del("Set-Cookie")
	if resp.StatusCode == http.StatusUnauthorized && resp.Request.Header.Get("Authorization") == "" {
		resp.StatusCode = http.StatusNotFound
	}
	return nil
}

// roundTrip makes a function an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// sameOrigin follows redirects of the first request, as git does, but sends the credential only to its own host.
// net/http compares only the name and ignores port and scheme, which is not enough.
func sameOrigin(req *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	if len(via) > 5 {
		return errors.New("too many redirects")
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		req.Header.Del("Authorization")
	}
	return nil
}

// alone reports whether the body of a push contains only this change. An empty body is accepted: git uses one to probe
// for permission. The body starts with a line per update, preceded by its length, and an empty line.
func (c update) alone(body *bufio.Reader) bool {
	const empty = "0000"
	size, err := body.Peek(4)
	if err != nil || string(size) == empty {
		return err == nil
	}
	n, err := strconv.ParseUint(string(size), 16, 10)
	if err != nil || n <= 4 {
		return false
	}
	begin, err := body.Peek(int(n) + 4)
	if err != nil || string(begin[n:]) != empty {
		return false
	}
	line, _, _ := strings.Cut(string(begin[4:n]), "\x00") // git's capabilities follow
	from, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if strings.Trim(from, "0") == "" { // there was none
		from = ""
	}
	return from == c.from && rest == c.to+" "+c.ref
}

// newTransport connects gates to remotes as git would in the same environment: through its proxies, with its
// certificates.
func newTransport(env []string) (http.RoundTripper, error) {
	vars := map[string]string{}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		vars[name] = value
	}
	either := func(name string) string {
		if v := vars[strings.ToLower(name)]; v != "" {
			return v
		}
		return vars[name]
	}
	proxy := (&httpproxy.Config{
		HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY"),
	}).ProxyFunc()
	t := &http.Transport{
		Proxy:               func(req *http.Request) (*url.URL, error) { return proxy(req.URL) },
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true, // forward bodies unchanged
		ForceAttemptHTTP2:   true,
	}
	file := vars["GIT_SSL_CAINFO"]
	if file == "" {
		return t, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read GIT_SSL_CAINFO: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("read GIT_SSL_CAINFO: no certificate in " + file)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
