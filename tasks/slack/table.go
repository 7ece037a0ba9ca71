package slack

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// What Slack shows as a table at most: rows, columns, and characters of which a part can be half full, so that it need not be cut.
const (
	maxRows      = 100
	maxColumns   = 20
	maxTableSize = maxMarkdown / 2
)

var delimiter = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)

// tables makes a block of code of each table that is larger than Slack shows, in which it can be read and cut.
func tables(text string) string {
	var b strings.Builder
	list := markdown.Lines(text)
	for i := 0; i < len(list); {
		if n := table(list[i:]); n > 0 {
			b.WriteString(framed(list[i : i+n]))
			i += n
			continue
		}
		b.WriteString(list[i].Text)
		i++
	}
	return b.String()
}

// table is how many of the first lines are one; 0 if they are none.
func table(list []markdown.Line) int {
	row := func(i int) bool {
		return i < len(list) && list[i].Kind == markdown.Text && strings.Contains(list[i].Text, "|")
	}
	if !row(0) || !row(1) || !delimiter.MatchString(strings.TrimRight(list[1].Text, "\r\n")) {
		return 0
	}
	n := 2
	for row(n) {
		n++
	}
	return n
}

// framed is a table, in a block of code if it is too large.
func framed(rows []markdown.Line) string {
	var all strings.Builder
	for _, r := range rows {
		all.WriteString(r.Text)
	}
	text := all.String()
	columns := strings.Count(strings.Trim(strings.TrimSpace(rows[0].Text), "|"), "|") + 1
	if len(rows)-1 <= maxRows && columns <= maxColumns && utf8.RuneCountInString(text) <= maxTableSize {
		return text
	}
	return markdown.Fenced("", strings.TrimSuffix(text, "\n")) + "\n"
}
