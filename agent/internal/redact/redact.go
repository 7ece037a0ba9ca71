// Package redact removes secrets from text, and makes text safe to show in a terminal or a chat.
//
// A [Redactor] hides the values it was given, in every form in which they commonly appear, and everything that looks
// like a well-known kind of credential. It is immutable and safe for concurrent use. A [Stream] does the same for text
// that arrives in pieces. [Plain], [OneLine] and [Clip] make untrusted text harmless and short.
//
// The package cannot hide a secret that it was not given and that has no well-known form, nor one that was encrypted,
// compressed or rewritten character by character.
package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted replaces a secret, whatever its length.
const redacted = "[redacted]"

// Redactor removes secrets from text: the values it was given, in all their forms (see forms), and anything with the
// shape of a well-known kind of credential (see shapes). It hides every byte of a secret, also where two secrets
// overlap, and replaces each run of hidden bytes with one [redacted]. A Redactor is immutable and safe for concurrent
// use. A nil *Redactor hides nothing.
type Redactor struct {
	secrets []pattern
	filter  filter
}

// New returns a Redactor for the given secrets and the well-known shapes. It ignores empty and very short values.
func New(secrets ...string) *Redactor {
	r := &Redactor{}
	for _, s := range shapes {
		r.secrets = append(r.secrets, pattern{text: []byte(s.text), names: s.names, body: s.body, least: s.least})
	}
	for _, s := range secrets {
		for _, f := range forms(s) {
			known := func(p pattern) bool { return p.body == 0 && string(p.text) == f }
			if !slices.ContainsFunc(r.secrets, known) {
				r.secrets = append(r.secrets, pattern{text: []byte(f)})
			}
		}
	}
	r.filter = newFilter(r.secrets)
	return r
}

// Bytes returns b without secrets. It returns b itself if b has no secrets, otherwise a copy.
func (r *Redactor) Bytes(b []byte) []byte {
	clean, _ := r.clean(b)
	return clean
}

// String returns s without secrets.
func (r *Redactor) String(s string) string {
	if clean, changed := r.clean([]byte(s)); changed {
		return string(clean)
	}
	return s
}

// JSON returns the JSON value v without secrets. The result is valid JSON: if a secret crosses the bounds of a string,
// all of v is hidden.
func (r *Redactor) JSON(v json.RawMessage) json.RawMessage {
	clean, changed := r.clean(v)
	if changed && !json.Valid(clean) {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return clean
}

func (r *Redactor) clean(b []byte) (_ []byte, changed bool) {
	found := r.find(b, true)
	if len(found.spans) == 0 {
		return b, false
	}
	clean, _ := hide(make([]byte, 0, len(b)), b, found.spans, false)
	return clean, true
}

// Head returns the first n characters of text, without secrets. Cutting text before redacting it would show the
// beginning of a secret that crosses the cut.
func (r *Redactor) Head(text []byte, n int) string {
	if len(text) <= utf8.UTFMax*n {
		return Clip(string(r.Bytes(text)), n)
	}
	return Clip(string(r.Stream().Write(text[:utf8.UTFMax*n])), n)
}

// span is a range of bytes to hide.
type span struct{ from, to int }

// findings are the secrets that find has found in a text.
type findings struct {
	spans   []span  // ordered by the beginnings of the secrets
	open    charset // the sets of secrets that may continue after the text
	settled int     // the text from here on may be the beginning of a secret
}

// find looks for secrets in b. If last is set, no text follows b.
func (r *Redactor) find(b []byte, last bool) findings {
	f := findings{settled: len(b)}
	if r == nil {
		return f
	}
	var known bodies
	for at := r.filter.next(b, 0); at < len(b); at = r.filter.next(b, at+stride) {
		for _, a := range r.filter.anchors(b[at:]) {
			begin := at - a.offset
			if begin < 0 || b[begin] != a.secret.text[0] {
				continue
			}
			s, is := a.secret.match(b[begin:])
			switch {
			case is == maybe && !last:
				f.settled = begin
				return f
			case is != yes:
				continue
			}
			s = span{begin + s.from, begin + s.to}
			if body := a.secret.body; body != 0 {
				if s.to = known.end(b, body, s.to); s.to == len(b) {
					f.open |= body
				}
			}
			f.spans = append(f.spans, s)
		}
	}
	if !last {
		f.settled = r.unsettled(b)
	}
	return f
}

// bodies caches the latest body of each set. Overlapping bodies of one set end at the same place, so each is measured
// only once.
type bodies [charsets]span

// end returns the end of the body of this set that extends to at least at.
func (l *bodies) end(b []byte, set charset, at int) int {
	i := set.index()
	if at < l[i].from || at > l[i].to {
		n, _ := set.follow(b[at:])
		l[i] = span{at, at + n}
	}
	return l[i].to
}

// unsettled checks the last bytes of b, which are too few for the filter, and returns where a secret may begin there.
func (r *Redactor) unsettled(b []byte) int {
	for begin := max(0, len(b)-shortest+1); begin < len(b); begin++ {
		for _, p := range r.filter.first[b[begin]] {
			if _, is := p.match(b[begin:]); is == maybe {
				return begin
			}
		}
	}
	return len(b)
}

// hide appends b to dst with the spans replaced; parts of spans outside b are ignored. hidden reports whether the byte
// before b was hidden. hide returns whether the last byte of b was.
func hide(dst, b []byte, spans []span, hidden bool) ([]byte, bool) {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	at := 0
	for _, s := range spans {
		if s.from >= len(b) {
			break
		}
		if s.from > at || at == 0 && !hidden { // otherwise it continues the previous span
			dst = append(append(dst, b[at:s.from]...), redacted...)
		}
		at, hidden = max(at, min(s.to, len(b))), true
	}
	return append(dst, b[at:]...), hidden && at == len(b)
}

const (
	minSecret = 6  // a shorter value, such as a test's "x", would redact most of the log
	minLine   = 16 // length from which a line of a multi-line secret is hidden by itself
)

// forms returns the texts in which a secret can appear: the secret itself, each line of a private key, JSON strings
// (also nested ones), URL encodings, hexadecimal, reversed, and as part of longer data in base64. A very short secret
// has no forms.
func forms(secret string) []string {
	secret = strings.TrimSpace(secret)
	if len(secret) < minSecret {
		return nil
	}
	all := []string{secret}
	if strings.Contains(secret, "\n") {
		for line := range strings.Lines(secret) {
			if line = strings.TrimSpace(line); len(line) >= minLine && !strings.HasPrefix(line, "-----") {
				all = append(all, line)
			}
		}
	}
	for _, s := range all {
		inside := escaped(s, false)
		query := url.QueryEscape(s)
		spaced := strings.ReplaceAll(query, "+", "%20")
		all = append(all, inside, escaped(s, true), escaped(inside, false), strings.ReplaceAll(inside, "/", `\/`))
		all = append(all, query, spaced, lowerPercent(query), lowerPercent(spaced))
	}
	inHex := hex.EncodeToString([]byte(secret))
	return append(append(all, inHex, strings.ToUpper(inHex), reversed(secret)), inBase64(secret)...)
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerPercent changes percent escapes to lower case.
func lowerPercent(s string) string { return percent.ReplaceAllStringFunc(s, strings.ToLower) }

// reversed returns the characters of s in reverse order.
func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// escaped returns s as the content of a JSON string, with <, > and & escaped if html is set, as Go's encoder does by
// default.
func escaped(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // encoding a string cannot fail
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

// inBase64 returns the base64 encodings of s inside longer data: one per alignment of s to the three-byte groups,
// without the characters at both ends that also encode neighbouring bytes.
func inBase64(s string) []string {
	var all []string
	for before := range 3 {
		data := append(make([]byte, before), s...)
		from, to := (before*8+5)/6, len(data)*8/6
		all = append(all, base64.RawStdEncoding.EncodeToString(data)[from:to], base64.RawURLEncoding.EncodeToString(data)[from:to])
	}
	return all
}
