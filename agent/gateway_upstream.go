package agent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// defaultUpstream is where the CLI goes when it is not told otherwise.
const defaultUpstream = "https://api.anthropic.com"

// newTransport makes the connections of all gateways to the model, the way the CLI would: through the proxy that the environment names,
// trusting what it names. SSL_CERT_FILE and SSL_CERT_DIR need no care: crypto/x509 honours them. There is no time limit on an answer,
// because the CLI has its own, of 600 s (claude-cli.md §4).
//
// A NODE_EXTRA_CA_CERTS that cannot be used is an error beside a transport that does without, as the CLI does.
func newTransport(getenv func(string) string) (*http.Transport, error) {
	either := func(upper, lower string) string {
		if v := getenv(upper); v != "" {
			return v
		}
		return getenv(lower)
	}
	proxy := (&httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: either("HTTPS_PROXY", "https_proxy"),
		NoProxy:    either("NO_PROXY", "no_proxy"),
	}).ProxyFunc()
	t := &http.Transport{
		Proxy:                  func(req *http.Request) (*url.URL, error) { return proxy(req.URL) },
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    maxConns,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // bodies pass as they are
		ForceAttemptHTTP2:      true,
		// All runs share a connection of HTTP/2, so one that died without a word has to be noticed.
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
