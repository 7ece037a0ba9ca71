package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// RedisURL is an address with a password inside: redis://:password@host:6379/0, rediss:// for TLS, unix:// for a socket,
// or redis+sentinel://:password@host:26379,host:26379/0?master=name, rediss+sentinel:// for TLS to Redis and Sentinels.
// It hides passwords when printed, or the whole URL if it cannot be parsed. Reveal returns the URL.
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

// secrets returns the passwords, each as it is sent and, if that differs, as it is written in the URL. That of Redis is
// the first.
func (r RedisURL) secrets() []string {
	u, err := r.split()
	if err != nil {
		return nil
	}
	var all []string
	if u.User != nil {
		sent, _ := u.User.Password()
		start, _ := r.hosts()
		_, user, _ := strings.Cut(string(r[:start]), "://")
		_, written, _ := strings.Cut(strings.TrimSuffix(user, "@"), ":")
		all = []string{sent, written}
	}
	if sent := u.Query().Get(sentinelPassword); sent != "" {
		_, written, _ := strings.Cut(u.RawQuery, sentinelPassword+"=")
		written, _, _ = strings.Cut(written, "&")
		all = append(all, sent, written)
	}
	return all
}

// Sentinels are the servers that know which Redis is the master, and the master's name there.
type Sentinels struct {
	Addrs          []string
	Master         string
	User, Password string // for the Sentinels themselves; empty: none
}

// The parameters of a URL with Sentinels.
const (
	masterName       = "master"
	sentinelUser     = "sentinel_user"
	sentinelPassword = "sentinel_password"
)

// Options returns how to connect to the Redis. If there are Sentinels, the options have no address. Its errors are not
// for users, because they may quote the password.
func (r RedisURL) Options() (*redis.Options, *Sentinels, error) {
	u, err := r.split()
	if err != nil {
		return nil, nil, err
	}
	scheme, sentinel := strings.CutSuffix(u.Scheme, "+sentinel")
	if !sentinel {
		if strings.Contains(u.Host, ",") {
			return nil, nil, errors.New("several hosts that are no Sentinels")
		}
		o, err := redis.ParseURL(string(r))
		return o, nil, err
	}
	query := u.Query()
	s := &Sentinels{
		Addrs: strings.Split(u.Host, ","), Master: query.Get(masterName), User: query.Get(sentinelUser), Password: query.Get(sentinelPassword),
	}
	if s.Master == "" {
		return nil, nil, errors.New("no name of a master")
	}
	for i, addr := range s.Addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil { // no port
			host, port = strings.Trim(addr, "[]"), "26379"
		}
		if host == "" {
			return nil, nil, errors.New("a Sentinel without a host")
		}
		s.Addrs[i] = net.JoinHostPort(host, port)
	}
	for _, own := range []string{masterName, sentinelUser, sentinelPassword} {
		query.Del(own)
	}
	server := url.URL{Scheme: scheme, User: u.User, Host: s.Addrs[0], Path: u.Path, RawQuery: query.Encode()}
	o, err := redis.ParseURL(server.String())
	if err != nil {
		return nil, nil, err
	}
	o.Addr = ""
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // each server has its own name
	}
	return o, s, nil
}

// parse splits the URL. It accepts only a URL with the password in the right place. Its errors are not for users.
func (r RedisURL) parse() (*url.URL, error) {
	if _, _, err := r.Options(); err != nil {
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

// split is url.Parse, which refuses several hosts with ports.
func (r RedisURL) split() (*url.URL, error) {
	start, end := r.hosts()
	first, _, several := strings.Cut(string(r[start:end]), ",")
	u, err := url.Parse(string(r[:start]) + first + string(r[end:]))
	if err == nil && several {
		u.Host = string(r[start:end])
	}
	return u, err
}

// hosts returns where the hosts begin and end.
func (r RedisURL) hosts() (start, end int) {
	scheme, rest, ok := strings.Cut(string(r), "://")
	if !ok {
		return 0, 0
	}
	if end = strings.IndexAny(rest, "/?#"); end < 0 {
		end = len(rest)
	}
	before := len(scheme) + len("://")
	return before + strings.LastIndex(rest[:end], "@") + 1, before + end
}

// check reports an invalid URL. It drops the parser's reason on purpose: the reason quotes the URL, or the part that
// it took for a port, which with an unescaped password is the password.
func (r RedisURL) check(p *Problems) {
	if r == "" {
		return
	}
	if _, err := r.parse(); err != nil {
		p.add("REDIS_URL", "is not the URL of a Redis",
			"write redis://:PASSWORD@HOST:6379/0 (rediss:// for TLS), or redis+sentinel://:PASSWORD@HOST:26379,HOST:26379/0?master=NAME, with special characters of passwords percent-encoded")
	}
}
