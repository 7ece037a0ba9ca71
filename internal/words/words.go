// Package words reads what people write to errand on GitHub and in Slack, each message once: [Markdown], and Slack's
// own notation.
//
// A mention or a command counts only in the author's own words. It is none in code, which shows how to ask, in a
// quotation, which others wrote, and in what the message hides from its readers. [Slack] decides that
// for its notation, and internal/markdown for Markdown.
//
// The package does not know which commands there are. Its functions are pure and may be called from any goroutine.
package words

import (
	"strings"
	"unicode"

	"github.com/errand-fleet/errand/internal/markdown"
)

// Words is a message, parsed.
type Words struct {
	All    string // what its readers see, as Markdown
	Text   string // the same without the mentions of errand
	Ours   int    // how often its author mentions errand
	Others int    // how often its author mentions anyone else
}

// Markdown reads a text as GitHub shows it. login is errand's, with or without [bot]; empty for nobody's.
func Markdown(s, login string) (w Words) {
	page := markdown.ReadPage(s)
	rest, ours, others := page.Without(login)
	w = Words{Text: rest.String(), Ours: ours, Others: others}
	if w.All = w.Text; ours > 0 {
		w.All = page.String()
	}
	return w
}

// First returns the first word of the text, which may be a command, the words behind it on its line, and the lines
// below. All are empty if the text begins with code that only its indentation marks. The signs of other code and of
// quotations are part of the word.
func (w Words) First() (word, behind, below string) {
	if strings.HasPrefix(w.Text, " ") || strings.HasPrefix(w.Text, "\t") {
		return "", "", ""
	}
	first, below, _ := strings.Cut(w.Text, "\n")
	word, behind = CutWord(first)
	return word, behind, below
}

// CutWord cuts the first word off a line. Any blank that Unicode has ends it.
func CutWord(line string) (word, rest string) {
	line = strings.TrimSpace(line)
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		return line, ""
	}
	return line[:end], strings.TrimSpace(line[end:])
}
