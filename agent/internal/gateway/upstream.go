package gateway

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Config says how all runs get to the model.
type Config struct {
	BaseURL     string      // of the model, except in a cloud; empty: the CLI's default
	Credentials []Named     // at least one, the preferred ones first. The only one need not have a name
	Models      []string    // further models that a run may ask; empty: those that the CLI offers
	Direct      bool        // runs get the credential itself and have no gateway
	Headers     http.Header // further headers of requests
	Getenv      func(string) string
	Log         *slog.Logger
}

// Upstream is the model's API, as all gateways share it.
type Upstream struct {
	cfg  Config
	url  *url.URL
	keys *keyring
}

// NewUpstream checks the configuration. It logs a warning about certificates that it cannot use, and leaves them out as
// the CLI does.
func NewUpstream(cfg Config) (*Upstream, error) {
	u, err := url.Parse(cmp.Or(cfg.BaseURL, "https://api.anthropic.com"))
	if err != nil {
		return nil, err
	}
	transport, err := NewTransport(cfg.Getenv)
	if err != nil {
		cfg.Log.Warn("certificates for the model are left out", "err", err)
	}
	if err := withClientCertificate(transport, cfg.Getenv); err != nil {
		cfg.Log.Warn("the client certificate for the model is left out", "err", err)
	}
	up := &Upstream{cfg: cfg, url: u, keys: &keyring{log: cfg.Log}}
	for _, c := range cfg.Credentials {
		up.keys.keys = append(up.keys.keys, newKey(c, transport, cfg))
	}
	return up, nil
}

// newKey returns a credential, with its way to the model over transport.
func newKey(c Named, transport http.RoundTripper, cfg Config) *key {
	if c.Token != nil {
		c.Credential = Credential{AuthToken: "fetched for each request"}
	}
	if c.Headers != nil {
		cfg.Headers = c.Headers
	}
	k := &key{Named: c, transport: transport}
	switch {
	case c.Cloud != nil:
		k.transport = cloudSigner{next: transport, cloud: c.Cloud, headers: cfg.Headers, log: cfg.Log}
	case c.Token != nil || len(cfg.Headers) > 0:
		k.transport = newSigner(transport, c, cfg)
	}
	return k
}

// Gated reports whether runs get to the model through a gateway.
func (u *Upstream) Gated() bool {
	first := u.keys.keys[0]
	return first.Cloud != nil || first.Name != "" || !u.cfg.Direct && first.Credential != (Credential{})
}

// Priced reports whether runs are charged at other prices than the CLI knows.
func (u *Upstream) Priced() bool {
	return u.Gated() && slices.ContainsFunc(u.keys.keys, func(k *key) bool { return len(k.Prices) > 0 })
}

// Access tells the CLI how to get to the model.
type Access struct {
	BaseURL    string // empty: the CLI's default
	Credential Credential
	Cloud      map[string]string // instead: variables for the CLI's mode of a cloud
	Names      map[string]string // what the provider calls the models of families
}

// Access returns the access of a run whose gateway is g. The CLI gets a credential of the same kind with and without a
// gateway, so that it behaves the same. At the gateway's address, however, it leaves out what only the model's own
// address offers. _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL would change that, but would also make the CLI send requests
// with the gateway's token to api.anthropic.com itself.
func (u *Upstream) Access(g *Gateway) Access {
	if g == nil {
		return u.keys.keys[0].access(u.cfg.BaseURL, "")
	}
	return g.lease.key.access(g.url, g.token)
}

// Names returns what replaces the gateway's own address in the CLI's sentences, which takes it for the model's.
func (g *Gateway) Names() *strings.Replacer {
	if g == nil {
		return strings.NewReplacer()
	}
	own := strings.TrimPrefix(g.url, "http://")
	switch u := g.upstream; {
	case g.lease.key.Cloud != nil:
		return strings.NewReplacer("your inference gateway ("+own+")", "the cloud's status", own, "the cloud")
	case u.cfg.BaseURL == "":
		return strings.NewReplacer("your inference gateway ("+own+")", "the status of "+u.url.Host, own, u.url.Host)
	default:
		return strings.NewReplacer(own, u.url.Host)
	}
}

// Sample returns an access with which the CLI finds no model: it can only check that there is one.
func (u *Upstream) Sample() Access {
	const nowhere = "http://127.0.0.1:9"
	if first := u.keys.keys[0]; first.Cloud != nil {
		return first.access(nowhere, "any")
	}
	return u.keys.keys[0].access(u.cfg.BaseURL, "sk-ant-any")
}

// access returns the access at a base URL with a token; empty: with the credential itself.
func (k *key) access(base, token string) Access {
	switch {
	case k.Cloud != nil: // the CLI sends no credential there, so the run's token is a part of the path
		return Access{Cloud: k.Cloud.Environment(base + "/" + token), Names: k.Names}
	case token == "":
		return Access{BaseURL: base, Credential: k.Credential, Names: k.Names}
	}
	return Access{BaseURL: base, Credential: k.With(token), Names: k.Names}
}

// NewTransport returns the transport of all gateways. It connects as the CLI would: through the proxy and with the
// certificates that the environment names (crypto/x509 itself reads SSL_CERT_FILE and SSL_CERT_DIR). Answers have no
// time limit, because the CLI has one of 600 s (seen with CLI 2.1.329).
//
// If NODE_EXTRA_CA_CERTS cannot be used, NewTransport returns an error and a transport without it.
func NewTransport(getenv func(string) string) (*http.Transport, error) {
	proxy := (&httpproxy.Config{
		HTTPProxy:  cmp.Or(getenv("HTTP_PROXY"), getenv("http_proxy")),
		HTTPSProxy: cmp.Or(getenv("HTTPS_PROXY"), getenv("https_proxy")),
		NoProxy:    cmp.Or(getenv("NO_PROXY"), getenv("no_proxy")),
	}).ProxyFunc()
	t := &http.Transport{
		Proxy:                  func(req *http.Request) (*url.URL, error) { return proxy(req.URL) },
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    MaxConns,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // bodies pass unchanged
		ForceAttemptHTTP2:      true,
		// All runs share one HTTP/2 connection, so a silently dead one must be detected.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	file := getenv("NODE_EXTRA_CA_CERTS")
	if file == "" {
		return t, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return t, fmt.Errorf("read NODE_EXTRA_CA_CERTS: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return t, fmt.Errorf("read the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return t, errors.New("read NODE_EXTRA_CA_CERTS: no certificate in " + file)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
