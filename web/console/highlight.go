package console

import (
	"path"
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"github.com/errand-fleet/errand/internal/display"
)

// Bounds of colouring. The code is untrusted, and a lexer's expressions may take long for it: what is beyond them stays
// plain.
const (
	paintFor  = 150 * time.Millisecond // for a page
	paintFile = 64 << 10               // bytes of a file's lines
)

// painter colours the code of one page.
type painter struct {
	now   func() time.Time
	until time.Time
}

func newPainter(now func() time.Time) painter { return painter{now, now().Add(paintFor)} }

// paint colours the lines of a diff of a file. Each hunk is read twice, as the new and as the old version.
func (p painter) paint(name string, lines []diffLine) {
	size := 0
	for _, l := range lines {
		size += len(l.text)
	}
	lexer := lexers.Match(path.Base(name))
	if lexer == nil || size > paintFile || !p.now().Before(p.until) {
		return
	}
	lexer = chroma.Coalesce(lexer)
	var now, before []*diffLine
	for i := range lines {
		switch l := &lines[i]; l.Class {
		case "hunk":
			p.hunk(lexer, before)
			p.hunk(lexer, now)
			now, before = nil, nil
		case "add":
			now = append(now, l)
		case "del":
			before = append(before, l)
		case "":
			now, before = append(now, l), append(before, l)
		}
	}
	p.hunk(lexer, before)
	p.hunk(lexer, now)
}

// hunk colours consecutive lines of one version.
func (p painter) hunk(lexer chroma.Lexer, lines []*diffLine) {
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text + "\n")
	}
	next, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, text.String())
	if err != nil {
		return
	}
	at, parts := 0, []codePart{}
	for t := next(); t != chroma.EOF; t = next() {
		if !p.now().Before(p.until) {
			return
		}
		for i, piece := range strings.Split(t.Value, "\n") {
			if i > 0 {
				if at < len(lines) {
					lines[at].Parts = parts
				}
				at, parts = at+1, nil
			}
			if piece != "" {
				parts = append(parts, codePart{colour(t.Type), display.Code(piece)})
			}
		}
	}
}

// colour returns the class of a token in static/style.css; empty: the colour of text.
func colour(t chroma.TokenType) string {
	switch {
	case t.InCategory(chroma.Comment):
		return "tc"
	case t == chroma.KeywordType, t == chroma.NameClass, t == chroma.NameBuiltin, t == chroma.NameTag:
		return "tt"
	case t.InCategory(chroma.Keyword):
		return "tk"
	case t.InSubCategory(chroma.LiteralString):
		return "ts"
	case t.InSubCategory(chroma.LiteralNumber):
		return "tn"
	case t == chroma.NameFunction, t == chroma.NameAttribute, t == chroma.NameDecorator:
		return "tf"
	}
	return ""
}
