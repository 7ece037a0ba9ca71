package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// redacted replaces a secret. It is the same length as nothing in particular, on purpose.
const redacted = "[redacted]"

// Redactor takes secrets out of text: the exact values it was given, and what looks like a well-known kind of credential. It
// works on whole lines or texts; it is immutable, and safe for concurrent use.
type Redactor struct{ known [][]byte }

// shapes are credentials known by their form. Each literal is looked for first, because it is hundreds of times cheaper than a
// regular expression and hardly any line has one.
var shapes = []struct {
	literal string
	re      *regexp.Regexp
}{
	{"sk-ant-", regexp.MustCompile(`sk-ant-[A-Za-z0-9_-]{8,}`)},
	{"xox", regexp.MustCompile(`xox[abeoprs]-[A-Za-z0-9-]{8,}`)},
	{"xapp-", regexp.MustCompile(`xapp-[A-Za-z0-9-]{8,}`)},
	{"ghp_", regexp.MustCompile(`ghp_[A-Za-z0-9]{16,}`)},
	{"gho_", regexp.MustCompile(`gho_[A-Za-z0-9]{16,}`)},
	{"ghs_", regexp.MustCompile(`ghs_[A-Za-z0-9]{16,}`)},
	{"ghu_", regexp.MustCompile(`ghu_[A-Za-z0-9]{16,}`)},
	{"github_pat_", regexp.MustCompile(`github_pat_[A-Za-z0-9_]{20,}`)},
	{"AKIA", regexp.MustCompile(`\bAKIA[0-9A-Z]{16}\b`)},
	{"PRIVATE KEY-----", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----`)},
}

// minSecret keeps a short value, such as a test's "x", from turning the log into a row of [redacted].
const minSecret = 6

// NewRedactor knows the given secrets besides the well-known shapes. Empty and very short values are left out.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{}
	add := func(s string) {
		if len(s) >= minSecret && !slices.ContainsFunc(r.known, func(k []byte) bool { return string(k) == s }) {
			r.known = append(r.known, []byte(s))
		}
	}
	for _, s := range secrets {
		add(strings.TrimSpace(s))
		if quoted, err := json.Marshal(s); err == nil {
			add(string(quoted[1 : len(quoted)-1])) // as it stands inside a JSON line
		}
	}
	// A secret that contains another one goes first, or its rest would stay.
	slices.SortFunc(r.known, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

// Bytes returns b without secrets: b itself when there is none in it, else a copy.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil {
		return b
	}
	for _, s := range r.known {
		if bytes.Contains(b, s) {
			b = bytes.ReplaceAll(b, s, []byte(redacted))
		}
	}
	for _, s := range shapes {
		if bytes.Contains(b, []byte(s.literal)) {
			b = s.re.ReplaceAll(b, []byte(redacted))
		}
	}
	return b
}

// String is Bytes for a string.
func (r *Redactor) String(s string) string { return string(r.Bytes([]byte(s))) }
