package markdown

import (
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// inWord is the markup that may stand between the letters of a word, which our own space of no width is not. behind is what follows a word that
// closes issues, which a word in a path does not have.
const (
	inWord = `[^\w\s\pZ` + nothing + `]*`
	behind = `[^\w\s\pZ./-]*[\s\pZ:]`
)

var (
	// closing is a word that closes the issue behind it, in what signs gives.
	closing = regexp.MustCompile(`(?i)\b(?:` + spelt("close") + `(?:` + inWord + `[sd])?|` + spelt("fix") + `(?:` + inWord + `e` + inWord + `[sd])?|` +
		spelt("resolve") + `(?:` + inWord + `[sd])?)\b` + behind)
	issue = regexp.MustCompile(`[#/-]` + inWord + `[0-9]`)
	sign  = regexp.MustCompile(`(?s)\\[[:punct:]]|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);|.`)

	linking = parser.NewParser(
		parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
		parser.WithInlineParsers(append(without(without(inline, parser.NewRawHTMLParser()), parser.NewLinkParser()),
			util.Prioritized(targeting{parser.NewLinkParser()}, 200))...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
)

func spelt(word string) string { return strings.Join(strings.Split(word, ""), inWord) }

// Unclosing is Neutral text that closes no issue when it describes a pull request that is merged. If it may refer to issues, words that close
// them get a space of no width behind their first letter, however they are put together.
func Unclosing(s string) string { return settle(s, unclose) }

func unclose(d *document) string {
	pc := parser.NewContext()
	linking.Parse(text.NewReader([]byte(parseable(d.text))), parser.WithContext(pc))
	at, _ := pc.Get(targets).(map[ast.Node]span)
	// A page does not show where links lead, unless GitHub sees no link there.
	all, from := signs(d.text, d.code)
	shown, shownFrom := signs(d.text, slices.AppendSeq(slices.Clone(d.code), maps.Values(at)))
	if !issue.MatchString(all) && !issue.MatchString(shown) {
		return d.text
	}
	var edits []edit
	for _, m := range closing.FindAllStringIndex(all, -1) {
		i := from[m[0]+1]
		edits = append(edits, edit{span{i, i}, nothing})
	}
	for _, m := range closing.FindAllStringIndex(shown, -1) {
		i := shownFrom[m[0]+1]
		edits = append(edits, edit{span{i, i}, nothing})
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	return apply(d.text, slices.Compact(edits))
}

// signs is a text with all signs as a page shows them, without some parts, and where in the text each byte is from.
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
		case c == "": // a backslash alone
			c = `\`
		case len(c) > 1 && c[0] == '&':
			if c = html.UnescapeString(c); utf8.RuneCountInString(c) != 1 {
				c = "&"
			}
		}
		if c == "_" { // which is part of a word to regexp
			c = "*"
		}
		b.WriteString(c)
		from = append(from, slices.Repeat([]int{m[0]}, len(c))...)
	}
	return b.String(), from
}
