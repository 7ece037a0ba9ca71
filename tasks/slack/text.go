package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// What makes Slack call people: its own notation, also in the ways in which Markdown can write it, and the names of everybody as people
// type them.
var (
	pings     = regexp.MustCompile(`(?i)(<|&(?:lt|#0*60|#x0*3c);)(\\*(?:!(?:channel|here|everyone|group|subteam)|@[a-z0-9]))`)
	everybody = regexp.MustCompile(`(?i)(^|[^a-z0-9_.])@(here|channel|everyone)\b`)
)

// quiet is text in which nobody is pinged, by a space of no width. Whether a markdown block expands Slack's notation is not documented,
// and in code it must not either.
func quiet(text string) string {
	text = pings.ReplaceAllString(text, "$1\u200b$2")
	return everybody.ReplaceAllString(text, "$1@\u200b$2")
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape is text as mrkdwn that shows it literally.
func escape(text string) string { return escaper.Replace(text) }

var (
	inline  = regexp.MustCompile("`[^`]+`")
	heading = regexp.MustCompile(`^[ ]{0,3}#{1,6}[ \t]+(.*?)[ \t#]*$`)
	links   = regexp.MustCompile(`!?\[([^\[\]]+)\]\(([^()\s]+)\)`)
	strong  = regexp.MustCompile(`\*\*([^*\n]+)\*\*`)
	webLink = regexp.MustCompile(`^(?:https?://|mailto:)[^|<>]+$`)
)

// mrkdwn turns Markdown into Slack's older notation, for where a markdown block is refused: headings, bold and links; the rest looks
// much the same in both.
func mrkdwn(text string) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		switch l.Kind {
		case markdown.Code:
			b.WriteString(escape(l.Text))
		case markdown.Opening, markdown.Closing:
			// Slack knows neither other fences nor a language behind one.
			if before := l.Text[:strings.IndexAny(l.Text, "`~")]; strings.TrimSpace(before) != "" {
				b.WriteString(escape(before)) // the sign of a quote or a list
			}
			b.WriteString("```" + l.Text[len(strings.TrimRight(l.Text, "\r\n")):])
		default:
			b.WriteString(spoken(l.Text))
		}
	}
	return b.String()
}

// spoken converts a line outside code.
func spoken(l string) string {
	text := strings.TrimRight(l, "\r\n")
	end := l[len(text):]
	around := ""
	if m := heading.FindStringSubmatch(text); m != nil && m[1] != "" {
		text, around = strings.ReplaceAll(m[1], "**", ""), "*"
	}
	var b strings.Builder
	last := 0
	for _, at := range inline.FindAllStringIndex(text, -1) {
		b.WriteString(phrase(text[last:at[0]]) + escape(text[at[0]:at[1]]))
		last = at[1]
	}
	return around + b.String() + phrase(text[last:]) + around + end
}

// phrase converts text without code. What was a < before stays one to read, so that only links of ours are notation.
func phrase(text string) string {
	text = links.ReplaceAllStringFunc(escape(text), func(s string) string {
		m := links.FindStringSubmatch(s)
		if !webLink.MatchString(m[2]) {
			return m[1] + " (" + m[2] + ")"
		}
		return "<" + m[2] + "|" + strings.ReplaceAll(m[1], "|", "/") + ">"
	})
	return strong.ReplaceAllString(text, "*$1*")
}

// cut keeps at most n characters.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// line is text in one line of at most n characters.
func line(text string, n int) string { return cut(strings.Join(strings.Fields(text), " "), n) }
