package main

import (
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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// login is the credential of the private registry.
const login = "reader:pa55-of-the-private-registry"

// corp is a company's private network: a registry of packages that needs a credential.
type corp struct {
	files    *http.ServeMux // of the registry
	registry *httptest.Server
	served   atomic.Int64 // requests with the credential

	hosts   []byte // for /etc/hosts
	trusted []byte // certificates
}

const registryHost = "packages.corp.example"

func newCorp() (*corp, error) {
	c := &corp{files: http.NewServeMux()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: registryHost}, DNSNames: []string{registryHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("create certificate: %w", err)
	}
	c.trusted = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read hosts: %w", err)
	}
	c.hosts = append(hosts, "\n127.0.0.1 "+registryHost+"\n"...)
	c.registry = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.registry.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.registry.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, MinVersion: tls.VersionTLS12,
	}
	c.registry.StartTLS()
	return c, nil
}

func (c *corp) serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user+":"+password != login {
		http.Error(w, "log in", http.StatusUnauthorized)
		return
	}
	c.served.Add(1)
	c.files.ServeHTTP(w, r)
}

// address returns the registry's host and port as runs know it.
func (c *corp) address() string {
	return net.JoinHostPort(registryHost, strconv.Itoa(c.registry.Listener.Addr().(*net.TCPAddr).Port))
}

// file serves a file.
func (c *corp) file(path, content string) {
	c.files.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) })
}

func (c *corp) close() { c.registry.Close() }
