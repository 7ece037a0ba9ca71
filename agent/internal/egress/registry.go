package egress

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Registry is a host whose requests get a credential that the run does not have. Only its requests are decrypted, and
// only those that read are passed on.
type Registry struct {
	Host, Port string   // normalized
	Credential string   // value of Authorization
	Secrets    []string // the forms of the credential that no answer may show
	Paths      []string // the paths that may be read, with everything below them; empty: all
	Realm      string   // another host, or host:port, that may get the credential for a token; may be empty
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
	tokens := p.tokens(reg)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", t.String(), t.String()
			for _, name := range unsafeHeaders {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("Accept-Encoding", "identity") // see checkAnswer
			r.Out.Header.Set("Authorization", reg.Credential)
		},
		Transport: tokens, BufferPool: &p.network.buffers, FlushInterval: -1, ErrorLog: p.server.ErrorLog,
		ModifyResponse: func(res *http.Response) error {
			p.reached(t)
			res.Header.Del("Set-Cookie") // a session would be a credential too
			return checkAnswer(res, tokens.secrets)
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
		case tokens.isRealm(req.URL.Path):
			http.Error(w, "errand: runs get no tokens of "+t.String()+"; the proxy adds them to requests",
				http.StatusForbidden)
		default:
			proxy.ServeHTTP(w, req)
		}
	})
}

// tokens returns the transport to a registry, which all connections of the run share.
func (p *Proxy) tokens(reg *Registry) *tokens {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.registries == nil {
		p.registries = map[*Registry]*tokens{}
	}
	if p.registries[reg] == nil {
		p.registries[reg] = &tokens{base: p.network.registries, reg: reg, secrets: newHidden(reg.Secrets...)}
	}
	return p.registries[reg]
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

// maxChecked is how much of an answer is read before any of it is passed on, so that one that shows the credential
// soon, such as settings for a client, is refused with a status. It also bounds the search for tokens.
const maxChecked = 64 << 10

// hidden are secrets that no answer may show.
type hidden struct {
	values []string
	known  *redact.Redactor // finds them in every form
}

func newHidden(values ...string) hidden { return hidden{values, redact.Known(values...)} }

// shownIn reports whether a text has one of the secrets.
func (h hidden) shownIn(text []byte) bool {
	short := func(value string) bool { return bytes.Contains(text, []byte(value)) } // too short for another form
	return slices.ContainsFunc(h.values, short) || h.known.Finds(text)
}

var errShown = errors.New("the answer shows the credential")

// checkAnswer returns an error if an answer shows a secret, for which some registries have a page, or is a token. What
// follows the first part of a long answer is searched while it is passed on, and ends where it shows a secret.
func checkAnswer(res *http.Response, secrets hidden) error {
	if strings.Join(res.Header.Values("Content-Encoding"), "") != "" {
		return errors.New("the answer has an encoding that was not asked for")
	}
	body := res.Body
	begin, err := io.ReadAll(io.LimitReader(body, maxChecked))
	if err != nil {
		return err
	}
	var header bytes.Buffer
	_ = res.Header.Write(&header)
	if secrets.shownIn(begin) || secrets.shownIn(header.Bytes()) {
		return errShown
	}
	if holdsToken(begin) {
		return errors.New("the answer is a token")
	}
	if len(begin) < maxChecked {
		res.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(begin), body}
		return nil
	}
	whole := io.MultiReader(bytes.NewReader(begin), body)
	res.Body = &searched{Closer: body, from: whole, clean: secrets.known.Stream()}
	return nil
}

// searched is a body that ends with an error before the first secret in it.
type searched struct {
	io.Closer
	from  io.Reader
	clean *redact.Stream

	buffer [32 << 10]byte
	ready  []byte // was searched
	err    error
}

func (s *searched) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		var n int
		n, s.err = s.from.Read(s.buffer[:])
		s.ready = s.clean.Write(s.buffer[:n])
		if s.err != nil {
			s.ready = append(bytes.Clone(s.ready), s.clean.Flush()...)
		}
		if s.clean.Found() {
			s.ready, s.err = nil, errShown
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
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

// authority signs the certificates with which the proxy answers for registries. Its key exists only in the memory of
// this process.
type authority struct {
	mu     sync.Mutex
	key    *ecdsa.PrivateKey
	cert   *x509.Certificate
	leaves map[string]*tls.Certificate
}

// authorityLimit is how long certificates are valid; clients refuse those of longer use.
const authorityLimit = 397 * 24 * time.Hour

// Certificate returns the certificate of the authority in PEM, which runs have to trust.
func (n *Network) Certificate() ([]byte, error) {
	a := &n.authority
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.create(); err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), nil
}

// create makes the key at the first use. The caller holds mu.
func (a *authority) create() error {
	if a.cert != nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of an authority: %w", err)
	}
	own := certificate("errand")
	own.IsCA, own.KeyUsage, own.MaxPathLenZero = true, x509.KeyUsageCertSign, true
	raw, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make the certificate of an authority: %w", err)
	}
	if own, err = x509.ParseCertificate(raw); err == nil {
		a.key, a.cert, a.leaves = key, own, map[string]*tls.Certificate{}
	}
	return err
}

// certificate returns a certificate for a host.
func (a *authority) certificate(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if leaf := a.leaves[host]; leaf != nil {
		return leaf, nil
	}
	if err := a.create(); err != nil {
		return nil, err
	}
	leaf := certificate(host)
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	if ip := net.ParseIP(host); ip != nil {
		leaf.IPAddresses = []net.IP{ip}
	} else {
		leaf.DNSNames = []string{host}
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, a.key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	a.leaves[host] = &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: a.key}
	return a.leaves[host], nil
}

// certificate returns the common part of a certificate.
func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{"errand"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(authorityLimit), BasicConstraintsValid: true,
	}
}
