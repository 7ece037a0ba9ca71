package agent

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// Registry is a package registry with a credential that runs use and do not have: the egress proxy of a run decrypts
// its requests to the registry, refuses those that do not only read, and adds the credential to the others. Runs of the
// Write profile with their own network get it, and scripts.
//
// Bearer or Basic may contain {{env "NAME"}}, a variable of the worker's environment; give what RegistrySecrets returns
// to the redactor.
type Registry struct {
	Host         string   // or host:port
	Bearer       string   // a token
	Basic        string   // user:password
	Repositories []string // patterns of all repositories of the runs that get it; empty: all
	Paths        []string // the paths that may be read, with everything below them; empty: all
}

// CheckRegistries returns everything that is wrong with registries. New refuses them then.
func CheckRegistries(list []Registry, getenv func(string) string) (errs []error) {
	for _, r := range list {
		if _, err := r.expand(getenv); err != nil {
			errs = append(errs, fmt.Errorf("registry %q: %w", r.Host, err))
		}
	}
	return errs
}

// RegistrySecrets returns the credentials of registries in the forms in which they occur. Those that cannot be used are
// left out.
func RegistrySecrets(list []Registry, getenv func(string) string) (secrets []string) {
	for _, r := range list {
		if one, err := r.expand(getenv); err == nil {
			secrets = append(secrets, one.Secrets...)
		}
	}
	return secrets
}

// shortSecret is the length from which a password by itself is recognised in answers: a shorter one could be a word.
const shortSecret = 8

// expand returns the registry with its credential.
func (r Registry) expand(getenv func(string) string) (egress.Registry, error) {
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		name, port = r.Host, "443"
	}
	host, ok := hostlist.Normalize(name)
	problems := hostlist.List{Mode: hostlist.None, Private: []string{r.Host}}.Problems()
	switch {
	case !ok || len(problems) > 0 || strings.HasPrefix(r.Host, "*"):
		return egress.Registry{}, errors.New("its host is not a host or host:port")
	case (r.Bearer == "") == (r.Basic == ""):
		return egress.Registry{}, errors.New("it has no credential, or two: set bearer or basic")
	}
	if err := checkPatterns(r.Repositories); err != nil {
		return egress.Registry{}, err
	}
	for _, p := range r.Paths {
		if !strings.HasPrefix(p, "/") {
			return egress.Registry{}, fmt.Errorf("the path %q does not begin with a slash", p)
		}
	}
	value, err := tools.Secret("credential", r.Bearer+r.Basic, getenv)
	if err != nil {
		return egress.Registry{}, err
	}
	one := egress.Registry{
		Host: host, Port: port, Paths: r.Paths, Credential: "Bearer " + value, Secrets: []string{value},
	}
	if r.Basic != "" {
		encoded := base64.StdEncoding.EncodeToString([]byte(value))
		one.Credential, one.Secrets = "Basic "+encoded, []string{value, encoded}
		_, password, found := strings.Cut(value, ":")
		if !found || password == "" {
			return egress.Registry{}, errors.New("basic is not of the form user:password")
		}
		if len(password) >= shortSecret {
			one.Secrets = append(one.Secrets, password)
		}
	}
	if strings.ContainsAny(value, "\r\n") {
		return egress.Registry{}, errors.New("its credential has more than one line")
	}
	return one, nil
}

// registries returns the registries of a run.
func (r *Runner) registries(s Spec) (list []egress.Registry) {
	if s.Profile != Write || s.inert || !s.ownNetwork {
		return nil
	}
	for _, one := range r.cfg.Registries {
		if expanded, err := one.expand(r.getenv); err == nil && s.covered(one.Repositories) { // checked by New
			list = append(list, expanded)
		}
	}
	return list
}

// trustFile and javaTrustFile are the names of the files in the run's directory with the certificates that its programs
// trust. Java reads no PEM. It wants a password for the file, which protects nothing; this one is Java's own.
const trustFile, javaTrustFile, javaTrustPassword = "certificates.pem", "certificates.p12", "changeit"

// trustVariables name that file for the usual programs. npm has its own variable because a cafile in its settings would
// replace NODE_EXTRA_CA_CERTS.
var trustVariables = []string{
	"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CARGO_HTTP_CAINFO",
	"CURL_CA_BUNDLE", "npm_config_cafile",
}

// systemRoots are where distributions have the certificates that programs trust.
var systemRoots = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// trust makes the programs of a run that has registries accept the certificates with which the proxy answers for these.
func (r *Runner) trust(s Spec, d session.Dirs) error {
	if len(r.registries(s)) == 0 {
		return nil
	}
	bundle, err := r.network.Certificate()
	if err != nil {
		return err
	}
	for _, file := range append([]string{r.getenv("SSL_CERT_FILE")}, systemRoots...) {
		if text, err := os.ReadFile(file); err == nil {
			bundle = slices.Concat(bundle, []byte("\n"), text)
			break
		}
	}
	if text, err := os.ReadFile(r.getenv("NODE_EXTRA_CA_CERTS")); err == nil {
		bundle = slices.Concat(bundle, []byte("\n"), text)
	}
	store, err := javaTrust(bundle)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{trustFile: bundle, javaTrustFile: store} {
		if err := os.WriteFile(filepath.Join(d.Root, name), content, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

// javaTrust returns the certificates of a bundle in the form of Java's truststores. It leaves out what is no
// certificate, and those without the name of an issuer, for which Java (17) rejects the whole store.
func javaTrust(bundle []byte) ([]byte, error) {
	var entries []pkcs12.TrustStoreEntry
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && cert.Issuer.String() != "" {
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: cert, FriendlyName: strconv.Itoa(len(entries))})
		}
	}
	// Java 8 reads no newer form.
	store, err := pkcs12.LegacyDES.EncodeTrustStoreEntries(entries, javaTrustPassword)
	if err != nil {
		return nil, fmt.Errorf("write certificates for Java: %w", err)
	}
	return store, nil
}
