// Package untrusted prepares text that others wrote for an agent: it removes what cannot be seen, and marks the rest as
// quoted material. What people wrote in Markdown or in Slack is read by internal/words.
package untrusted

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/internal/display"
)

// Plain returns text that is not rendered, such as a title or a log, without what cannot be seen.
func Plain(s string) string { return strings.TrimSpace(display.Words(s)) }

// Line returns text as one visible line of at most n characters.
func Line(s string, n int) string { return Short(Plain(s), n) }

// Code returns text as inline code of Markdown, of at most n characters.
func Code(s string, n int) string { return "`" + strings.ReplaceAll(Line(s, n), "`", "'") + "`" }

// Short returns text on one line of at most n characters. What cannot be seen stays.
func Short(s string, n int) string { return Cut(strings.Join(strings.Fields(s), " "), n) }

// Cut returns the first n characters.
func Cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

var fenceTag = regexp.MustCompile(`(?i)<(\s*/?\s*outside)`)

// Quote puts text between <outside> tags, which agents are told to treat as material and not as instructions. A tag
// inside the text that would end the quote is escaped.
func Quote(what, text string) string {
	return fmt.Sprintf("<outside what=%q>\n%s\n</outside>\n", what, fenceTag.ReplaceAllString(text, "&lt;$1"))
}
