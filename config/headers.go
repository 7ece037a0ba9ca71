package config

import (
	"iter"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// Pairs returns the names and decoded values of the headers that are sent with traces, in order.
func (t Traces) Pairs() iter.Seq2[string, string] { return t.Headers.otlp() }

// Pairs returns the names and values of Headers, in order.
func (m Model) Pairs() iter.Seq2[string, string] {
	return pairs(strings.ReplaceAll(m.Headers.Reveal(), `\n`, "\n"), "\n", ":")
}

// otlp returns the names and decoded values of headers in the form of OpenTelemetry's variables.
func (s Secret) otlp() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for name, value := range pairs(s.Reveal(), ",", "=") {
			if plain, err := url.PathUnescape(value); err == nil { // checkHeaders refuses the others
				value = strings.TrimSpace(plain)
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// pairs splits a text into names and values. It leaves out parts without a value.
func pairs(text, between, within string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for part := range strings.SplitSeq(text, between) {
			if name, value, ok := strings.Cut(part, within); ok &&
				!yield(strings.TrimSpace(name), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// checkHeaders refuses headers that OpenTelemetry's definition of the variable forbids. It does not quote these
// secrets.
func checkHeaders(p *Problems, s setting, _ string) {
	for part := range strings.SplitSeq(s.field.String(), ",") {
		name, value, ok := strings.Cut(part, "=")
		_, err := url.PathUnescape(value)
		if strings.TrimSpace(part) != "" && (!ok || err != nil || !headerName.MatchString(strings.TrimSpace(name))) {
			p.add(s.name, "must be name=value, with commas between several and percent-encoded values",
				"write %20 for a space, %2C for a comma and %25 for a percent sign")
			return
		}
	}
}

var (
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

	// secretHeader matches the names of headers that carry a credential.
	secretHeader = regexp.MustCompile(`(?i)authoriz|authentic|auth$|credential|key|token|secret|passw|cookie|signature`)
	scheme       = regexp.MustCompile(`(?i)^(Bearer|Basic|Token|ApiKey) +`)
)

// longValue is the length from which a value of letters and digits without spaces counts as a credential.
const longValue = 20

// secretValues returns the values of headers that carry credentials, with and without the scheme in front. Other values
// are ordinary words, such as the name of a team, which must not be redacted.
func secretValues(headers iter.Seq2[string, string]) (all []string) {
	for name, value := range headers {
		bare := scheme.ReplaceAllString(value, "")
		if bare != value || secretHeader.MatchString(name) || looksSecret(bare) {
			all = append(all, value, bare)
		}
	}
	return all
}

// looksSecret reports whether a value may be a credential, whatever the header is called.
func looksSecret(value string) bool {
	return len(value) >= longValue && !strings.ContainsFunc(value, unicode.IsSpace) &&
		strings.ContainsFunc(value, unicode.IsLetter) && strings.ContainsFunc(value, unicode.IsDigit)
}
