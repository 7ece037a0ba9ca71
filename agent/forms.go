package agent

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
	minSecret = 6  // keeps a short value, such as a test's "x", from turning the log into a row of [redacted]
	minLine   = 16 // what of a secret of several lines is hidden by itself
)

// forms returns the texts as which a secret turns up: itself, each of the lines of a private key, as a JSON string and as one within
// another, in an address, in hexadecimal, from its end to its beginning, and inside of longer data in base64. A very short secret has none.
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

// lowerPercent is an address whose escapes are in small letters.
func lowerPercent(s string) string { return percent.ReplaceAllStringFunc(s, strings.ToLower) }

// reversed is s from its end to its beginning.
func reversed(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// escaped is s as it stands inside of a JSON string. Go's own encoder escapes some characters of HTML as well.
func escaped(s string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(b.String()[1:], "\"\n")
}

// inBase64 returns what base64 makes of s whatever stands before and behind it: three texts, for data before it can end at each place
// in a group of three bytes. Of the characters at its ends, those that hold bits of other bytes as well are left out.
func inBase64(s string) []string {
	var all []string
	for before := range 3 {
		data := append(make([]byte, before), s...)
		from, to := (before*8+5)/6, len(data)*8/6
		all = append(all, base64.RawStdEncoding.EncodeToString(data)[from:to], base64.RawURLEncoding.EncodeToString(data)[from:to])
	}
	return all
}
