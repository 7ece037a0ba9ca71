package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// company is a gateway in front of the model that accepts some tokens and wants a header.
type company struct {
	*httptest.Server

	mu     sync.Mutex
	valid  string
	bodies []string // of accepted requests
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		if req.Header.Get("Authorization") != "Bearer "+c.valid || req.Header.Get("X-Api-Key") != c.valid || req.Header.Get("X-Team") != "platform" {
			http.Error(w, `{"type":"error"}`, http.StatusUnauthorized)
			return
		}
		c.bodies = append(c.bodies, string(body))
		_, _ = io.WriteString(w, `{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *company) accept(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.valid = token
}

// A token that a command prints is used for its life, and replaced at once when it is refused. The run has another one.
func TestTokenOfACommand(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	c.accept("one")
	var mu sync.Mutex
	prints, fetched := "one", 0
	var broken error
	u, err := NewUpstream(Config{
		BaseURL: c.URL, Getenv: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler),
		Headers: http.Header{"X-Team": {"platform"}}, TokenLife: time.Hour,
		Token: func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			fetched++
			return prints, broken
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !u.Gated() {
		t.Fatal("a run would get the token itself")
	}
	g := startGateway(t, u)
	own := u.Access(g).Credential
	if own.AuthToken == "" || own.AuthToken == "one" || own.AuthToken == u.Credential().AuthToken {
		t.Errorf("the run has %+v", own)
	}
	ask := func(want int) {
		t.Helper()
		resp, err := http.DefaultClient.Do(request(t, g, own, messagesPath, anyQuestion))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
	set := func(token string, err error) {
		mu.Lock()
		defer mu.Unlock()
		prints, broken = token, err
	}
	ask(200)
	ask(200)
	if fetched != 1 {
		t.Errorf("the command ran %d times", fetched)
	}
	set("two", nil)
	c.accept("two") // the first one has expired
	ask(200)
	if fetched != 2 {
		t.Errorf("the command ran %d times", fetched)
	}
	if got := c.bodies[len(c.bodies)-1]; got != anyQuestion {
		t.Errorf("the repeated question is %q", got)
	}
	// A refusal that another token does not change is passed on, and so is one without another token.
	c.accept("three")
	ask(401)
	set("", errors.New("the vault is sealed"))
	ask(401)
	c.accept("two") // which the gateway still has
	ask(200)
}

// The worker shows a company's gateway its certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile, pool := clientCertificate(t, dir)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, cert, key string
		ok              bool
	}{{"with it", certFile, keyFile, true}, {"without it", "", "", false}} {
		env := map[string]string{"NODE_EXTRA_CA_CERTS": ca, "CLAUDE_CODE_CLIENT_CERT": c.cert, "CLAUDE_CODE_CLIENT_KEY": c.key}
		u, err := NewUpstream(Config{
			BaseURL: server.URL, Credential: Credential{APIKey: "key"}, Getenv: func(name string) string { return env[name] }, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		g := startGateway(t, u)
		resp, err := http.DefaultClient.Do(request(t, g, Credential{APIKey: g.token}, messagesPath, anyQuestion))
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil && resp.StatusCode == http.StatusOK) != c.ok {
			t.Errorf("%s: %v, %v", c.name, resp, err)
		}
	}
}

func clientCertificate(t *testing.T, dir string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	for name, content := range map[string][]byte{certFile: text, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(name, slices.Clone(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return certFile, keyFile, pool
}
