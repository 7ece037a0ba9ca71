// Package display makes text of agents, tools and strangers safe to show on a page or a terminal.
//
// The results are valid UTF-8 without control sequences that move the cursor, set a colour or a title, or change the
// direction of text. HTML is not escaped. Text may come in pieces: a control sequence that is cut in two is spelled
// out.
package display

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// sequences matches the control sequences of terminals, such as colours and titles (ECMA-48), which tools print.
var sequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// invisible reports whether a character is a control character, or a mark that changes the direction of text.
func invisible(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069
}

// Text removes control sequences of terminals and spells out other invisible characters. The console's static/task.js
// does the same. Do not use it on markup: an unfinished control sequence would remove the markup after it.
func Text(s string) string { return Spelled(Plain(s)) }

// Plain removes control sequences of terminals like Text, and keeps other invisible characters.
func Plain(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd") // a single byte 0x9b begins a control sequence on some terminals
	if strings.ContainsRune(s, '\x1b') {
		s = sequences.ReplaceAllString(s, "")
	}
	return s
}

// Spelled spells out invisible characters. It removes nothing, so s may be markup.
func Spelled(s string) string {
	return spell(s, spelled)
}

func spelled(r rune) string {
	if r < 0x100 {
		return fmt.Sprintf(`\x%02x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Code spells out all characters of code that show nothing or act on their neighbours, such as zero-width spaces. Text
// keeps some of them, which words and emoji need.
func Code(s string) string {
	return spellThose(s, func(r rune) bool {
		return invisible(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	}, spelled)
}

// JSON escapes invisible characters in a JSON text, which means the same to programs and is safe on a terminal.
func JSON(s string) string {
	return spell(s, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

func spell(s string, escape func(rune) string) string {
	return spellThose(strings.ReplaceAll(s, "\r\n", "\n"), invisible, escape)
}

func spellThose(s string, which func(rune) bool, escape func(rune) string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if !strings.ContainsFunc(s, which) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if which(r) {
			b.WriteString(escape(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line returns Text on one line.
func Line(s string) string { return strings.Join(strings.Fields(Text(s)), " ") }

// Capital returns text with a capital first letter. Text whose first word may be code or a name stays as it is: such a
// word has anything but small letters, like main.go, iOS, left-pad or fix:, or no vowel, like npm.
func Capital(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if !plainWord.MatchString(word) || noVowel.MatchString(word) {
		return s
	}
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + s[n:] // not ToUpper, for Georgian
}

// plainWord matches a word of small letters and accents with what may follow it in a sentence.
var plainWord = regexp.MustCompile(`^\p{Ll}[\p{Ll}\p{M}]*(['’][\p{Ll}\p{M}]+)?[,;.!?…]*$`)

// noVowel matches words of these letters alone. Most are abbreviations.
var noVowel = regexp.MustCompile(`^[b-df-hj-np-tv-xz]+\P{L}*$`)

// Lasted formats a duration in whole seconds, without zero units: 2h, 15m, 1h0m5s.
func Lasted(d time.Duration) string {
	s := d.Round(time.Second).String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}

// Age formats a duration with one unit, rounded down.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// digits are the digits of a short ID: none looks like another one, and people may read I and L as 1, and O as 0.
const digits = "0123456789abcdefghjkmnpqrstvwxyz"

// TaskID returns the short form of a task's ID, for people: seven characters of a hash. Programs use the whole ID.
func TaskID(id string) string {
	sum := sha256.Sum256([]byte(id))
	bits := binary.BigEndian.Uint64(sum[:])
	short := make([]byte, 7)
	for i := range short {
		short[i] = digits[bits>>(59-5*i)&31]
	}
	return string(short)
}

// misread are the characters of a short ID as people may write them.
var misread = strings.NewReplacer("i", "1", "l", "1", "o", "0")

// MinTaskID is how many characters of a task's ID are enough to look for it.
const MinTaskID = 4

// IsTaskID reports whether text is a task's ID, or [MinTaskID] or more characters from the beginning of its short form.
func IsTaskID(id, text string) bool {
	text = strings.ToLower(text)
	return len(text) >= MinTaskID && (id == text || strings.HasPrefix(TaskID(id), misread.Replace(text)))
}

// Count formats a number: 999, 1.5k, 2.0M. The console's static/task.js does the same.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// Dollars formats an amount. A positive amount is never shown as zero. The console's static/task.js does the same.
func Dollars(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}

// Bytes formats an amount of memory or of a disk; it returns "" if it is unknown.
func Bytes(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1<<30:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
