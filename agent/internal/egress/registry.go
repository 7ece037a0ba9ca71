package egress

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Registry is a host whose requests get a credential that the run does not have. Only its requests are decrypted, and
// only those that read are passed on.
type Registry struct {
	Host, Port string   // normalized
	Credential string   // value of Authorization
	Secrets    []string // the forms of the credential that no answer may show
	Paths      []string // the paths that may be read, with everything below them; empty: all
}

// registry returns the registry at a target, or nil.
func (r Rules) registry(t target) *Registry {
	for i, one := range r.Registries {
		if one.Host == t.host && one.Port == t.port {
			return &r.Registries[i]
		}
	}
	return nil
}

// terminate serves the tunnel of a client to a registry: it decrypts the requests and passes them on.
func (p *Proxy) terminate(client net.Conn, t target, reg *Registry) {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return p.network.authority.certificate(t.host)
		},
	}
	conn := &closing{Conn: tls.Server(client, config), closed: make(chan struct{})}
	server := &http.Server{
		Handler: p.registryProxy(t, reg), ReadHeaderTimeout: headerLimit, IdleTimeout: idleLimit,
		MaxHeaderBytes: maxHeader, ErrorLog: p.server.ErrorLog,
		BaseContext: func(net.Listener) context.Context { return p.over },
	}
	_ = server.Serve(&one{conn: conn}) // returns when the connection is closed
}

// registryProxy passes requests on that read what reg allows.
func (p *Proxy) registryProxy(t target, reg *Registry) http.Handler {
	secrets := newHidden(reg.Secrets...)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", t.String(), t.String()
			for _, name := range unsafeHeaders {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("Accept-Encoding", "identity") // see checkAnswer
			r.Out.Header.Set("Authorization", reg.Credential)
		},
		Transport: p.network.registries, BufferPool: &p.network.buffers, FlushInterval: -1, ErrorLog: p.server.ErrorLog,
		ModifyResponse: func(res *http.Response) error {
			p.reached(t)
			res.Header.Del("Set-Cookie") // a session would be a credential too
			return checkAnswer(res, secrets)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { unreachable(w, t, err) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method != http.MethodGet && req.Method != http.MethodHead:
			http.Error(w, "errand: runs only read from "+t.String()+"; nothing can be published there",
				http.StatusForbidden)
		case !reg.allows(req.URL):
			http.Error(w, "errand: runs do not read this path of "+t.String(), http.StatusForbidden)
		default:
			proxy.ServeHTTP(w, req)
		}
	})
}

// unsafeHeaders are those that could replace the credential, or the method, path or extent of a request.
var unsafeHeaders = []string{
	"Authorization", "Cookie", "X-Api-Key", "X-Jfrog-Art-Api", "Private-Token", "Job-Token", "Connection", "Upgrade",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "Range",
}

// allows reports whether a run may read a path. A server could read one that contains "..", "\", a parameter (";") or
// an escape that is escaped ("%") as another.
func (r *Registry) allows(u *url.URL) bool {
	if !strings.HasPrefix(u.Path, "/") || strings.ContainsAny(u.Path, `\;%`) ||
		slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == ".." || part == "." }) {
		return false
	}
	return len(r.Paths) == 0 || slices.ContainsFunc(r.Paths, func(prefix string) bool {
		prefix = strings.TrimSuffix(prefix, "/")
		return u.Path == prefix || strings.HasPrefix(u.Path, prefix+"/")
	})
}

// one is a listener for one connection.
type one struct {
	conn  *closing
	taken bool
}

// Accept returns the connection, and an error once that is closed.
func (l *one) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return l.conn, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

func (l *one) Close() error   { return nil }
func (l *one) Addr() net.Addr { return l.conn.LocalAddr() }

// closing is a connection that tells when it is closed.
type closing struct {
	net.Conn

	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// beginning is a connection of which the beginning was read.
type beginning struct {
	net.Conn

	read io.Reader
}

func (b *beginning) Read(p []byte) (int, error) { return b.read.Read(p) }
