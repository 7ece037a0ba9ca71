package redissentinel

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/redisserver"
)

// user is the user of Redis and of the Sentinels for clients of a secure Redis. It has a password at each.
const user = "errand"

// StartSecure is like Start. The servers and Sentinels also listen with TLS, require a certificate of their CA from
// clients, and use it among themselves. Clients have a user at each, with the rights that page recommends:
// docs/redis.md.
func StartSecure(ctx context.Context, dir, page string) (*Redis, error) {
	r := &Redis{dir: dir, password: rand.Text(), guardsPassword: rand.Text(), secure: true}
	var err1, err2 error
	r.rights, err1 = Rights(page)
	r.guardRights, err2 = recommended(page, "user errand on >PASSWORD ")
	if err := errors.Join(err1, err2); err != nil {
		return r, err
	}
	return startAll(ctx, r)
}

// Rights returns the rights that page recommends for errand's user of Redis.
func Rights(page string) ([]string, error) {
	return recommended(page, "ACL SETUSER errand on >PASSWORD ")
}

// recommended returns the words of the line of a page after its beginning.
func recommended(page, begins string) ([]string, error) {
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("read recommended rights: %w", err)
	}
	_, line, ok := strings.Cut(string(text), "\n"+begins)
	if !ok {
		return nil, fmt.Errorf("read recommended rights: %s has no line %q", page, begins)
	}
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line), nil
}

// Certificates returns the files of the CA, and of a certificate with its key for the servers and their clients.
func (r *Redis) Certificates() (ca, cert, key string) {
	return filepath.Join(r.dir, "ca.pem"), filepath.Join(r.dir, "cert.pem"), filepath.Join(r.dir, "key.pem")
}

// WriteCertificates creates a CA, and a certificate of it for 127.0.0.1 that expires at a time, in a directory as
// Certificates describes.
func WriteCertificates(dir string, expires time.Time) error {
	r := &Redis{dir: dir}
	ca, cert, key := r.Certificates()
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA " + rand.Text()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, NotBefore: root.NotBefore,
		NotAfter: expires, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signed, err1 := x509.CreateCertificate(rand.Reader, root, root, &authority.PublicKey, authority)
	issued, err2 := x509.CreateCertificate(rand.Reader, leaf, root, &own.PublicKey, authority)
	private, err3 := x509.MarshalPKCS8PrivateKey(own)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	for file, block := range map[string]*pem.Block{
		ca: {Type: "CERTIFICATE", Bytes: signed}, cert: {Type: "CERTIFICATE", Bytes: issued},
		key: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

// protect lets a server listen with TLS and creates the user.
func (r *Redis) protect(ctx context.Context, s *redisserver.Server) error {
	port, err := redisserver.FreePort(ctx)
	if err != nil {
		return err
	}
	ca, cert, key := r.Certificates()
	if err := r.do(ctx, s, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", ca,
		"tls-port", port, "tls-replication", "yes"); err != nil {
		return err
	}
	r.tls[s] = fmt.Sprintf("127.0.0.1:%d", port)
	create := []any{"ACL", "SETUSER", user, "reset", "on", ">" + r.password}
	for _, right := range r.rights {
		create = append(create, right)
	}
	return r.do(ctx, s, create...)
}

// listenTLS returns the address with TLS of a Sentinel, and what it needs in its configuration.
func (r *Redis) listenTLS(ctx context.Context) (addr, config string, err error) {
	port, err := redisserver.FreePort(ctx)
	if err != nil {
		return "", "", err
	}
	ca, cert, key := r.Certificates()
	return fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf(`tls-port %d
tls-cert-file %q
tls-key-file %q
tls-ca-cert-file %q
tls-replication yes
user %s on >%s %s
`, port, cert, key, ca, user, r.guardsPassword, strings.Join(r.guardRights, " ")), nil
}

// addr returns where clients, replicas and Sentinels find a server.
func (r *Redis) addr(s *redisserver.Server) string {
	if addr, ok := r.tls[s]; ok {
		return addr
	}
	return s.Addr()
}

// secureURL is URL for a secure Redis.
func (r *Redis) secureURL() string {
	query := url.Values{"master": {name}, "sentinel_user": {user}, "sentinel_password": {r.guardsPassword}}
	return fmt.Sprintf("rediss+sentinel://%s:%s@%s/0?%s", user, r.password, strings.Join(r.guardsTLS, ","),
		query.Encode())
}
