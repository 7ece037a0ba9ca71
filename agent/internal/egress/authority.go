package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

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
