package slack

import (
	"strings"
	"unicode/utf8"
)

// minSplit is room for the lines that begin and end a block of code, and for something in it.
const minSplit = 3 * longFence

// split cuts Markdown into parts of at most limit characters: between paragraphs where that leaves a part at least half full, else
// between lines, else within a line. A block of code that is cut ends with its part and begins anew in the next. A limit below minSplit may not be
// kept.
func split(markdown string, limit int) []string {
	var parts []string
	for _, p := range pieces(markdown, limit) {
		if s := p.String(); strings.TrimSpace(s) != "" {
			parts = append(parts, s)
		}
	}
	return parts
}

// piece is a part of a text as it stands there, and what makes it whole.
type piece struct {
	open string // the line that begins its block of code anew
	text string
	end  string // the line that ends the block of code at its end
}

func (p piece) String() string {
	s := p.text
	if p.open != "" {
		s = p.open + "\n" + s
	} else {
		s = strings.TrimLeft(s, "\r\n")
	}
	if p.end != "" {
		return strings.TrimSuffix(s, "\n") + "\n" + p.end
	}
	return strings.TrimRight(s, "\r\n")
}

// pieces are all of the text, in order.
func pieces(text string, limit int) []piece {
	var list []piece
	var f fence // in which the next piece begins
	for text != "" {
		n, next := cutAt(text, f, limit)
		list = append(list, piece{open: f.open, text: text[:n], end: next.end()})
		text, f = text[n:], next
	}
	return list
}

// cutAt finds the end of the piece that begins a text, and in which block of code that is.
func cutAt(text string, f fence, limit int) (int, fence) {
	type place struct {
		at, size int // in bytes of the text and in characters of the part
		fence    fence
	}
	here := place{size: size(f.open), fence: f}
	var row, paragraph place
	for l := range strings.Lines(text) {
		next := here.fence
		opens := next.line(l) && next.marker != ""
		if here.size+utf8.RuneCountInString(strings.TrimSuffix(l, "\n"))+size(next.end()) > limit {
			break
		}
		here = place{here.at + len(l), here.size + utf8.RuneCountInString(l), next}
		if !opens { // behind that line an empty block would be left
			row = here
		}
		if next.marker == "" && strings.TrimSpace(l) == "" {
			paragraph = here
		}
	}
	switch {
	case here.at == len(text):
		return here.at, here.fence
	case paragraph.at > 0 && paragraph.size >= limit/2:
		return paragraph.at, paragraph.fence
	case row.at > 0:
		return row.at, row.fence
	}
	// Not even a line fits, or none behind the one that begins a block.
	n := here.at + within(text[here.at:], limit-here.size-size(here.fence.end()))
	next := here.fence
	next.line(text[here.at:n])
	return n, next
}

// within finds where to cut a line after at most n characters: after a space in the second half if there is one.
func within(l string, n int) int {
	at, space := 0, 0
	for n = max(n, 1); n > 0 && at < len(l); n-- {
		r, width := utf8.DecodeRuneInString(l[at:])
		if at += width; r == ' ' {
			space = at
		}
	}
	if space > at/2 {
		return space
	}
	return at
}

// size is the characters of a line that is added, with the newline it takes.
func size(l string) int {
	if l == "" {
		return 0
	}
	return utf8.RuneCountInString(l) + 1
}
