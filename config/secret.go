package config

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted is what stands for a secret wherever something of ours is printed.
const redacted = "[redacted]"

// Secret is a value that must not be seen. However it is formatted, logged or marshalled it comes out as "[redacted]" (an empty one
// as empty, so that one can see what is not set); only Reveal gives the value. Reading a Secret from JSON or YAML works as for a string.
//
// Keep it in exported fields and out of the keys of maps: fmt cannot call methods through an unexported field, and encoding/json
// asks no method of a key that is a string; both would show it.
type Secret string

// Reveal returns the value itself. Every call is a place to look at when a secret has leaked.
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

// Format hides the value from every verb of fmt, also from those that make no sense: for %d fmt itself would print the string.
func (s Secret) Format(f fmt.State, verb rune) { hide(f, verb, s.String(), s.GoString()) }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders that ask for text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }

// MarshalYAML hides the value from YAML.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// hide writes the stand-in of a secret: Go syntax for %#v, quoted for %q, plain for anything else.
func hide(f fmt.State, verb rune, text, syntax string) {
	switch {
	case verb == 'v' && f.Flag('#'):
		text = syntax
	case verb == 'q':
		text = fmt.Sprintf("%q", text)
	}
	// fmt collects in memory: there is no error to report and nobody to report it to.
	_, _ = io.WriteString(f, text)
}
