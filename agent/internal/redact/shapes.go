package redact

import (
	"bytes"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// shape describes a kind of credential: a fixed text, followed by a body of certain characters.
type shape struct {
	text  string
	names bool    // the text names the secret and is not hidden; marks may come between it and the body
	body  charset // the characters of the body
	least int     // minimum length of the body, which extends as far as its characters do
}

// shapes are the well-known kinds of credentials. A text has at least three bytes, and four with the first byte of the
// body: see filter.
var shapes = []shape{
	{text: "sk-ant-", body: dashed, least: 8}, // Anthropic
	{text: "sk-proj-", body: dashed, least: 20},
	{text: "sk-svcacct-", body: dashed, least: 20},
	{text: "sk-or-v1-", body: dashed, least: 20},
	{text: "AIza", body: dashed, least: 35}, // Google
	{text: "GOCSPX-", body: dashed, least: 20},
	{text: "ya29.", body: dotted, least: 20},
	{text: "hf_", body: alnum, least: 34}, // Hugging Face
	{text: "gsk_", body: alnum, least: 40},

	{text: "xoxa-", body: dashed, least: 8}, // Slack
	{text: "xoxb-", body: dashed, least: 8},
	{text: "xoxc-", body: dashed, least: 8},
	{text: "xoxd-", body: dotted, least: 8},
	{text: "xoxe-", body: dashed, least: 8},
	{text: "xoxe.", body: dotted, least: 8},
	{text: "xoxo-", body: dashed, least: 8},
	{text: "xoxp-", body: dashed, least: 8},
	{text: "xoxr-", body: dashed, least: 8},
	{text: "xoxs-", body: dashed, least: 8},
	{text: "xapp-", body: dashed, least: 8},
	{text: "hooks.slack.com/services/", names: true, body: base64Std, least: 20},

	{text: "ghp_", body: alnum, least: 16}, // GitHub
	{text: "gho_", body: alnum, least: 16},
	{text: "ghs_", body: dotted, least: 16},
	{text: "ghu_", body: alnum, least: 16},
	{text: "ghr_", body: alnum, least: 16},
	{text: "github_pat_", body: dashed, least: 20},
	{text: "x-access-token:", names: true, body: dotted, least: 16},
	{text: "eC1hY2Nlc3MtdG9rZW46", body: base64Std, least: 16}, // base64 of "x-access-token:", as git sends it
	{text: "glpat-", body: dotted, least: 16},                  // GitLab
	{text: "npm_", body: alnum, least: 36},
	{text: "pypi-AgE", body: dashed, least: 40},
	{text: "dckr_pat_", body: dashed, least: 20},

	{text: "AKIA", body: upper, least: 16}, // AWS
	{text: "ASIA", body: upper, least: 16},
	{text: "aws_secret_access_key", names: true, body: base64Std, least: 40},
	{text: "AWS_SECRET_ACCESS_KEY", names: true, body: base64Std, least: 40},
	{text: "SecretAccessKey", names: true, body: base64Std, least: 40},
	{text: "secretAccessKey", names: true, body: base64Std, least: 40},
	{text: "sk_live_", body: alnum, least: 16}, // Stripe
	{text: "rk_live_", body: alnum, least: 16},
	{text: "SG.", body: dotted, least: 60}, // SendGrid

	{text: "eyJhbGciOi", body: dotted, least: 32}, // JSON web tokens: base64 of {"alg":, {"typ": and {"kid":
	{text: "eyJ0eXAiOi", body: dotted, least: 32},
	{text: "eyJraWQiOi", body: dotted, least: 32},
	{text: "Bearer ", names: true, body: dotted, least: 20},
	{text: "bearer ", names: true, body: dotted, least: 20},

	// Private keys, also truncated ones, with line feeds written as \n, or with the line numbers of a tool. An old
	// encrypted key begins with headers; the last of them is followed by the salt and the key.
	{text: "BEGIN PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN RSA PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN EC PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN DSA PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN OPENSSH PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN ENCRYPTED PRIVATE KEY-----", body: armour, least: 48},
	{text: "BEGIN PGP PRIVATE KEY BLOCK-----", body: armour, least: 48},
	{text: "DEK-Info: AES-128-CBC,", body: armour, least: 64},
	{text: "DEK-Info: AES-192-CBC,", body: armour, least: 64},
	{text: "DEK-Info: AES-256-CBC,", body: armour, least: 64},
	{text: "DEK-Info: DES-EDE3-CBC,", body: armour, least: 64},
}

// charset is a set of bytes, or a union of sets.
type charset uint8

const (
	alnum     charset = 1 << iota
	upper             // capital letters and digits
	dashed            // alnum and _-
	dotted            // characters of web tokens
	base64Std         // alnum, + and /
	armour            // characters of a PEM key: base64, white space, \n, and line numbers with their marks
	marks             // characters between a name and its value; disjoint from the bodies of shapes with names
	charsets  = iota
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz"

// setsOf maps each byte to the sets it is in.
var setsOf = func() (sets [256]charset) {
	for set, members := range map[charset]string{
		alnum:     alphabet,
		upper:     alphabet[:36],
		dashed:    alphabet + "_-",
		dotted:    alphabet + "_-.~+/%",
		base64Std: alphabet + "+/",
		armour:    alphabet + "+/= \t\r\n\\:|>→",
		marks:     " \t:=\"'\\>",
	} {
		for _, c := range []byte(members) {
			sets[c] |= set
		}
	}
	return sets
}()

// follow returns the length of the longest prefix of b whose bytes are all in one of the sets. If that is all of b,
// open are those sets.
func (s charset) follow(b []byte) (n int, open charset) {
	for i, c := range b {
		if s &= setsOf[c]; s == 0 {
			return i, 0
		}
	}
	return len(b), s
}

// index returns the number of a single set.
func (s charset) index() int { return bits.TrailingZeros8(uint8(s)) }

// pattern is a known value, which has no body, or a shape.
type pattern struct {
	text  []byte
	given bool // a value of New, or a part of one
	names bool
	body  charset
	least int
}

// longestGap is the maximum number of marks between a name and its value, such as \\\": \\\" in doubly nested JSON.
const longestGap = 12

// verdict says whether a text begins with a pattern.
type verdict int

const (
	no    verdict = iota
	maybe         // the text is too short to say
	yes
)

// match reports whether b begins with p, and which part of b is then secret. The body may continue after that part.
func (p *pattern) match(b []byte) (span, verdict) {
	s := span{to: min(len(b), len(p.text)), given: p.given}
	if !bytes.HasPrefix(p.text, b[:s.to]) {
		return span{}, no
	}
	if p.names {
		gap, _ := marks.follow(b[s.to:min(len(b), s.to+longestGap)])
		s.from, s.to = s.to+gap, s.to+gap
	}
	n, _ := p.body.follow(b[s.to:min(len(b), s.to+p.least)])
	s.to += n
	switch {
	case n == p.least && len(b) >= len(p.text):
		return s, yes
	case s.to == len(b):
		return s, maybe
	default:
		return span{}, no
	}
}

// terminalSequences matches what a terminal interprets: control sequences such as colours, strings such as titles and
// links, and escapes of two characters (ECMA-48).
var terminalSequences = regexp.MustCompile(sequence)

const sequence = `\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`

// Plain makes text valid UTF-8 and safe to show in a terminal. It removes terminal sequences, and spells out invalid
// bytes, marks that change the direction of writing, and control characters other than tab and newline. It returns text
// itself if it is already plain.
func Plain(text []byte) []byte {
	if n := plainPrefix(text); n == len(text) {
		return text
	}
	text = terminalSequences.ReplaceAll(text, nil)
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		n := plainPrefix(text)
		out, text = append(out, text[:n]...), text[n:]
		switch r, size := utf8.DecodeRune(text); {
		case size == 0:
		case r == '\r' && len(text) > 1 && text[1] == '\n':
			text = text[1:]
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf:
			out, text = fmt.Appendf(out, `\x%02x`, text[0]), text[1:]
		default:
			out, text = fmt.Appendf(out, `\u%04x`, r), text[size:]
		}
	}
	return out
}

// PlainStream makes text plain that arrives in pieces: its output, joined, equals Plain of the whole text. It holds
// back an end of a piece that may be part of a terminal sequence, unless that becomes longer than longestSequence.
type PlainStream struct{ held []byte }

// longestSequence limits what a PlainStream holds back.
const longestSequence = 4 << 10

// wholeSequence matches a terminal sequence at the beginning of a text, and openSequence a text that may be the
// beginning of one.
var (
	wholeSequence = regexp.MustCompile(`^` + sequence)
	openSequence  = regexp.MustCompile(`^\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$`)
)

// Write adds a piece and returns the text that can be shown. It is valid only as long as piece is.
func (p *PlainStream) Write(piece []byte) []byte {
	text := piece
	if len(p.held) > 0 {
		text = append(p.held, piece...)
	}
	at := len(text) - openEnd(text)
	p.held = bytes.Clone(text[at:])
	return Plain(text[:at])
}

// Flush ends the text and returns the rest of it. The PlainStream can then be used for another text.
func (p *PlainStream) Flush() []byte {
	rest := Plain(p.held)
	p.held = nil
	return rest
}

// openEnd returns how many bytes at the end of text may have another meaning with what follows.
func openEnd(text []byte) int {
	if bytes.HasSuffix(text, []byte("\r")) {
		return 1
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) && !utf8.FullRune(end) {
			return n
		}
	}
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], '\x1b')
		if next < 0 {
			return 0
		}
		at += next
		if rest := len(text) - at; rest <= longestSequence && openSequence.Match(text[at:]) {
			return rest
		}
		at += max(1, len(wholeSequence.Find(text[at:])))
	}
}

// plainPrefix returns the length of the longest prefix of text that is plain.
func plainPrefix(text []byte) int {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c >= ' ' && c < 0x7f || c == '\n' || c == '\t':
			i++
		case c < utf8.RuneSelf:
			return i
		default:
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				return i
			}
			i += size
		}
	}
	return len(text)
}

// OneLine returns s as one line, without secrets and without characters that a terminal or a chat would interpret. It
// redacts twice: before, because a secret can hold line breaks, and after, because one can be written with invisible
// characters in between.
func (r *Redactor) OneLine(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c):
			return ' '
		case unicode.In(c, unicode.Cc, unicode.Cf):
			return -1
		}
		return c
	}, r.String(s))
	return r.String(strings.Join(strings.Fields(s), " "))
}

// Clip shortens s to at most n characters. It does not read s beyond them.
func Clip(s string, n int) string {
	end := 0
	for i := range s {
		switch n--; n {
		case 0:
			end = i
		case -1:
			return s[:end] + "…"
		}
	}
	return s
}
