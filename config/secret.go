package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redacted replaces a secret in everything that is printed.
const redacted = "[redacted]"

// Secret is a value that must not be shown. It is formatted, logged and marshalled as "[redacted]", or as empty if it
// is empty, to show what is not set. Only Reveal returns the value. A Secret is read from JSON or YAML like a string.
//
// Keep it in exported fields and out of map keys: fmt cannot call methods through an unexported field, and
// encoding/json calls no method of a string key. Both would show the value.
type Secret string

// Reveal returns the value itself. Check every call if a secret has leaked.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the value from code that asks for Go syntax.
func (s Secret) GoString() string { return fmt.Sprintf("config.Secret(%q)", s.String()) }

// Format hides the value from every verb of fmt, including unsuitable ones: for %d fmt itself would print the string.
func (s Secret) Format(f fmt.State, verb rune) { hide(f, verb, s.String(), s.GoString()) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders that ask for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// MarshalYAML hides the value from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// hide writes the replacement of a secret: Go syntax for %#v, quoted for %q, plain for other verbs.
func hide(f fmt.State, verb rune, text, syntax string) {
	switch {
	case verb == 'v' && f.Flag('#'):
		text = syntax
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	}
	_, _ = io.WriteString(f, text)
}

// RedisURL is an address with a password inside: redis://:password@host:6379/0, rediss:// for TLS or unix:// for a socket. It
// hides the password when printed, or the whole URL if it cannot be parsed. Reveal returns the URL.
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
	// Redacted writes xxxxx; net/url would percent-encode the brackets of our word.
	return strings.Replace(u.Redacted(), ":xxxxx@", ":"+redacted+"@", 1)
}

// GoString hides the password from code that asks for Go syntax.
func (r RedisURL) GoString() string { return fmt.Sprintf("config.RedisURL(%q)", r.String()) }

// Format hides the password from every verb of fmt.
func (r RedisURL) Format(f fmt.State, verb rune) { hide(f, verb, r.String(), r.GoString()) }

// LogValue hides the password from slog.
func (r RedisURL) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText hides the password from JSON and other encoders.
func (r RedisURL) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalYAML hides the password from YAML.
func (r RedisURL) MarshalYAML() (any, error) { return r.String(), nil }

// secrets returns the password as it is sent and, if that differs, as it is written in the URL.
func (r RedisURL) secrets() []string {
	u, err := r.parse()
	if err != nil || u.User == nil {
		return nil
	}
	sent, _ := u.User.Password()
	_, rest, _ := strings.Cut(string(r), "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	_, written, _ := strings.Cut(rest[:strings.LastIndex(rest, "@")], ":")
	return []string{sent, written}
}

// parse splits the URL. It accepts only a URL with the password in the right place. Its errors are not for users.
func (r RedisURL) parse() (*url.URL, error) {
	if _, err := redis.ParseURL(string(r)); err != nil {
		return nil, err
	}
	u, err := url.Parse(string(r))
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

// check reports an invalid URL. It drops the parser's reason on purpose: the reason quotes the URL, or the part that
// it took for a port, which with an unescaped password is the password.
func (r RedisURL) check(p *Problems) {
	if r == "" {
		return
	}
	if _, err := r.parse(); err != nil {
		p.add("REDIS_URL", "is not the URL of a Redis",
			"write redis://:PASSWORD@HOST:6379/0 (rediss:// for TLS), with special characters of the password percent-encoded")
	}
}
