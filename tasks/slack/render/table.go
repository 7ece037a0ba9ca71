package render

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// The largest table that Slack shows: rows, columns, and as many characters as fill half a part, so that a table need not be cut.
const (
	maxRows      = 100
	maxColumns   = 20
	maxTableSize = maxMarkdown / 2
)

var delimiter = regexp.MustCompile(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)

// fenceTables puts each table that is larger than Slack shows into a block of code, which can be read and cut.
func fenceTables(text string) string {
	var b strings.Builder
	list := markdown.Lines(text)
	for i := 0; i < len(list); {
		if n := tableLength(list[i:]); n > 0 {
			b.WriteString(fenceTable(list[i : i+n]))
			i += n
			continue
		}
		b.WriteString(list[i].Text)
		i++
	}
	return b.String()
}

// tableLength returns how many of the first lines are a table; 0 if they are none.
func tableLength(list []markdown.Line) int {
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

// fenceTable returns a table, in a block of code if it is too large.
func fenceTable(rows []markdown.Line) string {
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
