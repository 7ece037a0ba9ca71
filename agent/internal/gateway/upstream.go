package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/errand-fleet/errand/agent/cloud"
)

// Config says how all runs get to the model.
type Config struct {
	BaseURL     string // of the model; empty: the CLI's default
	Credential  Credential
	Credentials []Named                               // instead of Credential, the preferred ones first; nil: there is only that one
	Prices      PriceList                             // come before the list prices
	Models      []string                              // further models that a run may ask; empty: those that the CLI offers
	Direct      bool                                  // runs get the credential itself and have no gateway
	Headers     http.Header                           // further headers of requests
	Token       func(context.Context) (string, error) // returns a token that replaces Credential; nil: none
	TokenLife   time.Duration                         // how long a token is used
	Names       map[string]string                     // what the provider calls the models of families
	Cloud       cloud.Provider                        // instead of BaseURL and Credential; nil: Anthropic's own API, or a gateway like it
	Getenv      func(string) string
	Log         *slog.Logger
}

// Upstream is the model's API, as all gateways share it.
type Upstream struct {
	cfg       Config
	url       *url.URL
	transport http.RoundTripper
	keys      *keyring
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
	up := &Upstream{cfg: cfg, url: u, transport: transport}
	if cfg.Token != nil {
		up.cfg.Credential = Credential{AuthToken: "fetched for each request"}
	}
	up.keys = &keyring{log: cfg.Log}
	for _, c := range cfg.Credentials {
		up.keys.keys = append(up.keys.keys, &key{Named: c, state: KeyState{Cap: c.Cap}})
	}
	if len(cfg.Credentials) == 0 {
		up.keys.keys = []*key{{Named: Named{Credential: up.cfg.Credential}}}
	}
	up.cfg.Credential = up.keys.keys[0].Credential
	switch {
	case cfg.Cloud != nil:
		up.transport = cloudSigner{next: transport, cloud: cfg.Cloud, headers: cfg.Headers, log: cfg.Log}
	case cfg.Token != nil || len(cfg.Headers) > 0:
		up.transport = newSigner(transport, cfg)
	}
	return up, nil
}

// Credential returns the credential, or the preferred one of several. It stands for a token that changes if there is one.
func (u *Upstream) Credential() Credential { return u.cfg.Credential }

// Gated reports whether runs get to the model through a gateway.
func (u *Upstream) Gated() bool {
	return u.cfg.Cloud != nil || len(u.cfg.Credentials) > 0 || !u.cfg.Direct && u.cfg.Credential != (Credential{})
}

// Access tells the CLI how to get to the model.
type Access struct {
	BaseURL     string // empty: the CLI's default
	Credential  Credential
	Credentials []Named           // instead of Credential, the preferred ones first; nil: there is only that one
	Cloud       map[string]string // instead: variables for the CLI's mode of a cloud
}

// Access returns the access of a run whose gateway is g. The CLI gets a credential of the same kind with and without a
// gateway, so that it behaves the same. At the gateway's address, however, it leaves out what only the model's own
// address offers. _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL would change that, but would also make the CLI send requests
// with the gateway's token to api.anthropic.com itself.
func (u *Upstream) Access(g *Gateway) Access {
	switch {
	case g == nil:
		return Access{BaseURL: u.cfg.BaseURL, Credential: u.cfg.Credential}
	case u.cfg.Cloud != nil: // the CLI sends no credential there, so the run's token is a part of the path
		return Access{Cloud: u.cfg.Cloud.Environment(g.url + "/" + g.token)}
	}
	return Access{BaseURL: g.url, Credential: g.keys.kind.With(g.token)}
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
