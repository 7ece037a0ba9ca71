package markdown

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// inWord matches markup between the letters of a word. after matches what follows a word that closes an issue; a word
// in a path is followed by something else.
const (
	inWord = `[^\w\s\pZ` + zeroWidth + `]*`
	after  = `[^\w\s\pZ./-]*[\s\pZ:]`
)

var (
	// closing matches a word that closes the issue after it, in a text that signs returns.
	closing = regexp.MustCompile(`(?i)\b(?:` + spelt("close") + `(?:` + inWord + `[sd])?|` + spelt("fix") + `(?:` + inWord + `e` + inWord + `[sd])?|` +
		spelt("resolve") + `(?:` + inWord + `[sd])?)\b` + after)
	issue = regexp.MustCompile(`[#/-]` + inWord + `[0-9]`)
	sign  = regexp.MustCompile(`(?s)\\[[:punct:]]|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);|.`)
)

func spelt(word string) string { return strings.Join(strings.Split(word, ""), inWord) }

// Unclosing returns neutral text that closes no issue as the description of a merged pull request. If it may refer to
// issues, each word that closes them gets a zero-width space after its first letter, however the word is composed.
func Unclosing(s string) string { return settle(s, unclose) }

func unclose(d *document) string {
	// A page does not show the addresses of links, unless GitHub finds no link there.
	var edits []edit
	found := false
	for _, hidden := range [][]span{d.code, slices.AppendSeq(slices.Clone(d.code), maps.Values(d.targets))} {
		shown, from := signs(d.text, hidden)
		found = found || issue.MatchString(shown)
		for _, m := range closing.FindAllStringIndex(shown, -1) {
			i := from[m[0]+1]
			edits = append(edits, edit{span{i, i}, zeroWidth})
		}
	}
	if !found {
		return d.text
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return apply(d.text, slices.Compact(edits))
}

// signs returns the characters that a page shows, without the hidden parts, and the offset in the text of each byte.
func signs(s string, hidden []span) (string, []int) {
	hides := make([]bool, len(s))
	for _, h := range hidden {
		for i := h.from; i < h.to; i++ {
			hides[i] = true
		}
	}
	var b strings.Builder
	var from []int
	for _, m := range sign.FindAllStringIndex(s, -1) {
		if hides[m[0]] {
			continue
		}
		c := strings.TrimPrefix(s[m[0]:m[1]], `\`)
		switch {
		case c == "": // a single backslash
			c = `\`
		case len(c) > 1 && c[0] == '&':
			if c = html.UnescapeString(c); utf8.RuneCountInString(c) != 1 {
				c = "&"
			}
		}
		if c == "_" { // which regexp counts as part of a word
			c = "*"
		}
		b.WriteString(c)
		from = append(from, slices.Repeat([]int{m[0]}, len(c))...)
	}
	return b.String(), from
}
