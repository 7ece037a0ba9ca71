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
)

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
