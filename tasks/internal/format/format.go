// Package format has the small text and JSON helpers that package tasks shares with its worker.
package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// JSON marshals one of errand's own structs, which cannot fail. It does not escape HTML, because escaped markup takes
// six times the space.
func JSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("marshal %T: %v", v, err))
	}
	return b.Bytes()
}

// Head splits s after at most n bytes and never inside a character.
func Head(s string, n int) (head, rest string) {
	if len(s) <= n {
		return s, ""
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD"), s[n:]
}

// Tail returns the last n bytes of a text, or less: in whole lines if it has several.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, whole, found := strings.Cut(s, "\n"); found {
		return whole
	}
	return strings.ToValidUTF8(s, "")
}

// Paragraphs joins the non-empty texts as paragraphs.
func Paragraphs(texts ...string) string {
	var list []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			list = append(list, t)
		}
	}
	return strings.Join(list, "\n\n")
}

// OneWord replaces the white space in a name with dashes.
func OneWord(name string) string { return strings.Join(strings.Fields(name), "-") }

// Hash returns a short hash of the parts, for use as a key.
func Hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}
