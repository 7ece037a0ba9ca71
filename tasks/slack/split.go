package slack

import (
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/markdown"
)

// split cuts Markdown into parts of at most limit characters.
func split(text string, limit int) []string {
	return markdown.Split(text, limit, utf8.RuneCountInString)
}
