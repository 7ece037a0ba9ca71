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
	"strings"

	"github.com/redis/go-redis/v9"
)

// RedisURL is an address with a password inside: redis://:password@host:6379/0, rediss:// for TLS, unix:// for a
// socket, or redis+sentinel://:password@host:26379,host:26379/0?master=name, rediss+sentinel:// for TLS to Redis and
// Sentinels. It hides passwords when printed, or the whole URL if it cannot be parsed. Reveal returns the URL.
type RedisURL string

// Reveal returns the URL with its password, for redis.ParseURL.
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

// The parameters of a URL with Sentinels.
const (
	masterName       = "master"
	sentinelUser     = "sentinel_user"
	sentinelPassword = "sentinel_password"
)

// passed are the parameters of go-redis that a URL may have, and ours those that errand sets itself.
var (
	passed = []string{
		"db", "client_name", "protocol", "skip_verify", "min_retry_backoff", "max_retry_backoff", "pool_fifo",
		"pool_size", "pool_timeout", "min_idle_conns", "max_active_conns", "max_concurrent_dials", "pipeline_pool_size",
		"pipeline_read_buffer_size", "pipeline_write_buffer_size", "conn_max_idle_time", "conn_max_lifetime",
		"conn_max_lifetime_jitter",
	}
	ours = []string{"dial_timeout", "read_timeout", "write_timeout", "max_retries", "max_idle_conns"}
)

// parameterError is a parameter that a URL must not have. It may be shown.
type parameterError struct{ what, remedy string }

func (e parameterError) Error() string { return e.what }

// checkParameters refuses a parameter that would have no effect. It names only known ones: others may be a part of a
// password that is not escaped.
func checkParameters(query url.Values) error {
	for name := range query {
		switch {
		case slices.Contains(ours, name):
			return parameterError{"has the parameter " + name + ", which errand sets itself", "remove it"}
		case !slices.Contains(passed, name):
			return parameterError{
				"has an unknown parameter", "use only " + strings.Join(passed, ", ") + "; with Sentinels also " +
					masterName + ", " + sentinelUser + ", " + sentinelPassword,
			}
		}
	}
	return nil
}

// Options returns how to connect to Redis: directly, or through Sentinels. The other one is nil. Its errors are not for
// users, because they may quote the password.
func (r Redis) Options() (*redis.Options, *redis.FailoverOptions, error) {
	direct, sentinels, err := r.URL.options()
	if err != nil {
		return nil, nil, err
	}
	security := &tls.Config{} // of no connection
	if direct != nil && direct.TLSConfig != nil {
		security = direct.TLSConfig
	} else if sentinels != nil && sentinels.TLSConfig != nil {
		security = sentinels.TLSConfig
	}
	if r.CA != "" {
		security.RootCAs = x509.NewCertPool()
		security.RootCAs.AppendCertsFromPEM([]byte(r.CA))
	}
	if r.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.Key.Reveal()))
		if err != nil {
			return nil, nil, err
		}
		security.Certificates = []tls.Certificate{pair}
	}
	return direct, sentinels, nil
}

func (r RedisURL) options() (*redis.Options, *redis.FailoverOptions, error) {
	u, err := r.split()
	if err != nil {
		return nil, nil, err
	}
	query := u.Query()
	scheme, sentinel := strings.CutSuffix(u.Scheme, "+sentinel")
	if !sentinel {
		if strings.Contains(u.Host, ",") {
			return nil, nil, errors.New("several hosts that are no Sentinels")
		}
		o, err := redis.ParseURL(string(r))
		return o, nil, cmp.Or(checkParameters(query), err)
	}
	addrs := strings.Split(u.Host, ",")
	for i, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil { // no port
			host, port = strings.Trim(addr, "[]"), "26379"
		}
		if host == "" {
			return nil, nil, errors.New("a Sentinel without a host")
		}
		addrs[i] = net.JoinHostPort(host, port)
	}
	master, user, password := query.Get(masterName), query.Get(sentinelUser), query.Get(sentinelPassword)
	if master == "" {
		return nil, nil, errors.New("no name of a master")
	}
	for _, own := range []string{masterName, sentinelUser, sentinelPassword} {
		query.Del(own)
	}
	if err := checkParameters(query); err != nil {
		return nil, nil, err
	}
	server := url.URL{Scheme: scheme, Host: addrs[0], Path: u.Path, RawQuery: query.Encode()}
	o, err := redis.ParseFailoverURL(server.String())
	if err != nil {
		return nil, nil, err
	}
	o.MasterName, o.SentinelAddrs, o.SentinelUsername, o.SentinelPassword = master, addrs, user, password
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // each server has its own name
	}
	return nil, o, nil
}

// parse splits the URL. It accepts only a URL with the password in the right place. Its errors are not for users.
func (r RedisURL) parse() (*url.URL, error) {
	if _, _, err := r.options(); err != nil {
		return nil, err
	}
	u, err := r.split()
	if err != nil {
		return nil, err
	}
	if u.Host == "" && u.Scheme != "unix" { // go-redis reads redis:password as localhost
		return nil, errors.New("no host")
	}
	if _, ok := u.User.Password(); u.User != nil && !ok { // redis://password@host: go-redis would send no password
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
	if parameter, ok := errors.AsType[parameterError](err); ok {
		p.add("REDIS_URL", parameter.what, parameter.remedy)
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
