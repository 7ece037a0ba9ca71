package render

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// The two notations that make Slack notify people: its own, also in the forms in which Markdown can write it, and names of groups as people
// type them.
var (
	pings     = regexp.MustCompile(`(?i)(<|&(?:lt|#0*60|#x0*3c);)(\\*(?:!(?:channel|here|everyone|group|subteam)|@[a-z0-9]))`)
	everybody = regexp.MustCompile(`(?i)(^|[^a-z0-9_.])@(here|channel|everyone)\b`)
)

// NoPings breaks everything in text that would notify people with a zero-width space. Slack does not document whether a markdown block
// expands its notation, so code is treated likewise.
func NoPings(text string) string {
	text = pings.ReplaceAllString(text, "$1\u200b$2")
	return everybody.ReplaceAllString(text, "$1@\u200b$2")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape is the mrkdwn that shows text literally.
func Escape(text string) string { return escaper.Replace(text) }

// Literal is the mrkdwn that shows at most n characters of text in one line, literally and without notifying anybody.
func Literal(text string, n int) string { return Escape(NoPings(Line(text, n))) }

var (
	inline  = regexp.MustCompile("`[^`]+`")
	heading = regexp.MustCompile(`^[ ]{0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	links   = regexp.MustCompile(`!?\[([^\[\]]+)\]\(([^()\s]+)\)`)
	strong  = regexp.MustCompile(`\*\*([^*\n]+)\*\*`)
	webLink = regexp.MustCompile(`^(?:https?://|mailto:)[^|<>]+$`)
)

// mrkdwn turns Markdown into Slack's older notation, for messages whose markdown block is refused. It converts headings, bold text and
// links; the rest looks much the same in both.
func mrkdwn(text string) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		switch l.Kind {
		case markdown.Code:
			b.WriteString(Escape(l.Text))
		case markdown.Opening, markdown.Closing:
			// Slack knows neither other fences nor a language behind one.
			if before := l.Text[:strings.IndexAny(l.Text, "`~")]; strings.TrimSpace(before) != "" {
				b.WriteString(Escape(before)) // the sign of a quote or a list
			}
			b.WriteString("```" + l.Text[len(strings.TrimRight(l.Text, "\r\n")):])
		default:
			b.WriteString(convertLine(l.Text))
		}
	}
	return b.String()
}

// convertLine converts a line outside code.
func convertLine(l string) string {
	text := strings.TrimRight(l, "\r\n")
	end := l[len(text):]
	around := ""
	if m := heading.FindStringSubmatch(text); m != nil && m[1] != "" {
		text, around = strings.ReplaceAll(m[1], "**", ""), "*"
	}
	var b strings.Builder
	last := 0
	for _, at := range inline.FindAllStringIndex(text, -1) {
		b.WriteString(convertInline(text[last:at[0]]) + Escape(text[at[0]:at[1]]))
		last = at[1]
	}
	return around + b.String() + convertInline(text[last:]) + around + end
}

// convertInline converts text without code. It escapes first, so that the links it makes are the only notation.
func convertInline(text string) string {
	text = links.ReplaceAllStringFunc(Escape(text), func(s string) string {
		m := links.FindStringSubmatch(s)
		if !webLink.MatchString(m[2]) {
			return m[1] + " (" + m[2] + ")"
		}
		return "<" + m[2] + "|" + strings.ReplaceAll(m[1], "|", "/") + ">"
	})
	return strong.ReplaceAllString(text, "*$1*")
}

// Cut keeps at most n characters.
func Cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// Line is text in one line of at most n characters.
func Line(text string, n int) string { return Cut(strings.Join(strings.Fields(text), " "), n) }

// Lines joins the texts that are not empty, each on a line of its own.
func Lines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// split cuts Markdown into parts of at most limit characters.
func split(text string, limit int) []string {
	return markdown.Split(text, limit, utf8.RuneCountInString)
}
