package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// RedisURL is an address with a password inside: redis://:password@host:6379/0, rediss:// for TLS, unix:// for a
// socket, or redis+sentinel://:password@host:26379,host:26379/0?master=name, rediss+sentinel:// for TLS to Redis and
// Sentinels. It hides passwords when printed, or the whole URL if it cannot be parsed. Reveal returns the URL.
type RedisURL string

// Reveal returns the URL with its password.
func (r RedisURL) Reveal() string { return string(r) }

// String hides the password.
func (r RedisURL) String() string {
	if r == "" {
		return ""
	}
	u, err := r.parse()
	if err != nil {
		return redacted
	}
	query := u.Query()
	if query.Has(sentinelPassword) {
		query.Set(sentinelPassword, "xxxxx")
		u.RawQuery = query.Encode()
	}
	// Redacted writes xxxxx; net/url would percent-encode the brackets of our word.
	text := strings.Replace(u.Redacted(), ":xxxxx@", ":"+redacted+"@", 1)
	return strings.Replace(text, sentinelPassword+"=xxxxx", sentinelPassword+"="+redacted, 1)
}

// GoString hides the password from code that asks for Go syntax.
func (r RedisURL) GoString() string { return fmt.Sprintf("config.RedisURL(%q)", r.String()) }

// Format hides the password from every verb of fmt.
func (r RedisURL) Format(f fmt.State, verb rune) { hide(f, verb, r.String(), r.GoString()) }

// LogValue hides the password from slog.
func (r RedisURL) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText hides the password from JSON, YAML and other encoders.
func (r RedisURL) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// secrets returns the passwords, each as it is sent and, if that differs, as it is written in the URL. That of Redis
// comes before that of Sentinel.
func (r RedisURL) secrets() []string {
	u, err := r.split()
	if err != nil {
		return nil
	}
	var all []string
	if u.User != nil {
		sent, _ := u.User.Password()
		_, written, _ := strings.Cut(strings.TrimSuffix(urlParts.FindStringSubmatch(string(r))[2], "@"), ":")
		all = []string{sent, written}
	}
	if sent := u.Query().Get(sentinelPassword); sent != "" {
		_, written, _ := strings.Cut(u.RawQuery, sentinelPassword+"=")
		written, _, _ = strings.Cut(written, "&")
		all = append(all, sent, written)
	}
	return all
}

// Parameters of a URL with TLS or with Sentinels.
const (
	skipVerify       = "skip_verify"
	masterName       = "master"
	sentinelUser     = "sentinel_user"
	sentinelPassword = "sentinel_password"
)

// ofSentinels are the parameters that a URL may have with Sentinels.
var ofSentinels = []string{masterName, sentinelUser, sentinelPassword}

// errParameter is about a parameter or a value that would have no effect. It does not name it: it may be a part of a
// password that is not escaped.
var errParameter = errors.New("an unknown parameter or value")

// RedisAddress is where Redis is, and how to log in there.
type RedisAddress struct {
	Network  string   // tcp or unix
	Servers  []string // host:port or the path of the socket; with Master, of the Sentinels
	Master   string   // the name that the Sentinels know; empty: no Sentinels
	Database int

	User, SentinelUser         string
	Password, SentinelPassword Secret

	TLS *tls.Config // nil: none
}

// Address returns how to connect to Redis. Its errors are not for users, because they may quote the password.
func (r Redis) Address() (RedisAddress, error) {
	a, err := r.URL.address()
	if err != nil || a.TLS == nil {
		return a, err
	}
	if r.CA != "" {
		a.TLS.RootCAs = x509.NewCertPool()
		a.TLS.RootCAs.AppendCertsFromPEM([]byte(r.CA))
	}
	if r.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.Key.Reveal()))
		if err != nil {
			return RedisAddress{}, err
		}
		a.TLS.Certificates = []tls.Certificate{pair}
	}
	return a, nil
}

func (r RedisURL) address() (a RedisAddress, err error) {
	u, err := r.split()
	if err != nil {
		return RedisAddress{}, err
	}
	scheme, sentinels := strings.CutSuffix(u.Scheme, "+sentinel")
	password, _ := u.User.Password()
	a = RedisAddress{Network: "tcp", User: u.User.Username(), Password: Secret(password)}
	database := strings.Trim(u.Path, "/")
	switch {
	case scheme == "unix" && !sentinels && strings.TrimSpace(u.Path) != "":
		a.Network, a.Servers, database = "unix", []string{u.Path}, ""
	case scheme != "redis" && scheme != "rediss":
		return RedisAddress{}, errors.New("another scheme, or no path of a socket")
	case sentinels:
		a.Servers, err = servers(u.Host, "26379")
	default:
		a.Servers, err = servers(u.Host, "6379")
	}
	query, known := u.Query(), []string{"db"}
	if scheme == "rediss" {
		known = append(known, skipVerify)
		insecure := slices.Contains([]string{"true", "1"}, query.Get(skipVerify))
		a.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure} //nolint:gosec // as asked for
	}
	if sentinels {
		known = append(known, ofSentinels...)
		a.Master, a.SentinelUser = query.Get(masterName), query.Get(sentinelUser)
		a.SentinelPassword = Secret(query.Get(sentinelPassword))
	}
	skips := []string{"", "0", "1", "false", "true"}
	for name := range query {
		if !slices.Contains(known, name) || name == skipVerify && !slices.Contains(skips, query.Get(name)) {
			return RedisAddress{}, errParameter
		}
	}
	if sentinels && a.Master == "" || !sentinels && len(a.Servers) > 1 {
		err = cmp.Or(err, errors.New("no name of a master, or several hosts that are no Sentinels"))
	}
	if database = cmp.Or(query.Get("db"), database); database != "" && err == nil {
		a.Database, err = strconv.Atoi(database)
	}
	return a, err
}

// servers returns the addresses of a list of hosts.
func servers(hosts, port string) ([]string, error) {
	addrs := strings.Split(hosts, ",")
	for i, addr := range addrs {
		host, own, err := net.SplitHostPort(addr)
		if err != nil { // no port
			host = strings.Trim(addr, "[]")
		}
		if host == "" {
			return nil, errors.New("no host")
		}
		addrs[i] = net.JoinHostPort(host, cmp.Or(own, port))
	}
	return addrs, nil
}

// parse splits the URL. It accepts only a URL with the password in the right place. Its errors are not for users.
func (r RedisURL) parse() (*url.URL, error) {
	if _, err := r.address(); err != nil {
		return nil, err
	}
	u, err := r.split()
	if err != nil {
		return nil, err
	}
	if _, ok := u.User.Password(); u.User != nil && !ok { // redis://password@host would send no password
		return nil, errors.New("a user and no password")
	}
	return u, nil
}

// urlParts splits any text into scheme, user with password, hosts and the rest. Without a scheme, all is the rest.
var urlParts = regexp.MustCompile(`(?s)^(?:(.*?://)([^/?#]*@|)([^/?#]*)|)(.*)$`)

// split is url.Parse, which refuses several hosts with ports.
func (r RedisURL) split() (*url.URL, error) {
	part := urlParts.FindStringSubmatch(string(r))
	first, _, several := strings.Cut(part[3], ",")
	u, err := url.Parse(part[1] + part[2] + first + part[4])
	if err == nil && several {
		u.Host = part[3]
	}
	return u, err
}

// check reports an invalid URL. It drops the parser's reason on purpose: the reason quotes the URL, or the part that
// it took for a port, which with an unescaped password is the password.
func (r RedisURL) check(p *Problems) {
	if r == "" {
		return
	}
	_, err := r.parse()
	if errors.Is(err, errParameter) {
		p.add("REDIS_URL", "has "+errParameter.Error(), "use only db; with TLS also "+skipVerify+
			" (true or false); with Sentinels also "+strings.Join(ofSentinels, ", "))
	} else if err != nil {
		p.add("REDIS_URL", "is not the URL of a Redis",
			"write redis://:PASSWORD@HOST:6379/0 (rediss:// for TLS), or "+
				"redis+sentinel://:PASSWORD@HOST:26379,HOST:26379/0?master=NAME, with special characters "+
				"of passwords percent-encoded")
	}
}

// readFiles reads the certificates and the key of connections to Redis.
func (r *Redis) readFiles(p *Problems, read readFunc) {
	const ca, cert, key = "ERRAND_REDIS_CA_FILE", "ERRAND_REDIS_CERT_FILE", "ERRAND_REDIS_KEY_FILE"
	before, given := len(*p), r.CAFile+r.CertFile+r.KeyFile
	r.CA, r.Cert = readFile(p, read, ca, &r.CAFile), readFile(p, read, cert, &r.CertFile)
	r.Key = Secret(readFile(p, read, key, &r.KeyFile))
	if len(*p) > before || given == "" {
		return
	}
	if r.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(r.CA)) {
		p.add(ca, "has no certificate in PEM form", "set it to the file with the certificate of the CA")
		r.CA = ""
	}
	if _, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.Key.Reveal())); err != nil && r.Cert+r.Key.Reveal() != "" {
		p.add(cert, "and "+key+" are not a certificate and its key in PEM form",
			"set both, to files that belong together")
		r.Cert, r.Key = "", ""
	}
	if u, err := r.URL.split(); err == nil && !strings.HasPrefix(u.Scheme, "rediss") {
		p.add("REDIS_URL", "uses no TLS although a certificate is set",
			"write rediss:// or rediss+sentinel://, or unset "+ca+", "+cert+" and "+key)
	}
}
