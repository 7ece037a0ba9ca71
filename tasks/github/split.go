package github

import (
	"strings"
	"unicode/utf8"
)

// split cuts Markdown into parts of at most limit bytes, between paragraphs where it can. A block of code that is cut ends with its
// part and goes on in the next one.
func split(text string, limit int) []string {
	var parts []string
	for len(text) > limit {
		n, inside := cutAt(text, limit)
		part, rest := text[:n], text[n:]
		if inside.marker == "" {
			part, rest = strings.TrimRight(part, "\n"), strings.TrimLeft(rest, "\n")
		} else {
			part, rest = strings.TrimSuffix(part, "\n")+"\n"+inside.marker, inside.open+"\n"+rest
		}
		parts, text = append(parts, part), rest
	}
	return append(parts, text)
}

// cutAt finds where to cut, and in which block of code that is: after the last paragraph that fits, else after the last line, else
// inside a line, if it alone takes half a part.
func cutAt(text string, limit int) (at int, inside fences) {
	var f fences
	end, paragraph := 0, 0
	for l := range strings.Lines(text) {
		next := f
		next.code(l)
		if end+len(l)+len("\n")+len(next.marker) > limit {
			break
		}
		f, end = next, end+len(l)
		if f.marker == "" && strings.TrimSpace(l) == "" {
			paragraph = end
		}
	}
	switch {
	case paragraph > limit/2:
		return paragraph, fences{}
	case end > limit/2:
		return end, f
	}
	at = limit - len("\n") - len(f.marker)
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return at, f
}

// longFence is the length up to which a line that opens a block of code is one: it is repeated where a block is cut.
const longFence = 100

// fences follows the blocks of code through the lines of a text. It takes for code only what certainly is: what begins and ends at
// the left margin, and only until something comes up that could nest (a list, a quote, HTML) around a fence.
type fences struct {
	open, marker string // the line that began the present block, and what ends it; empty outside
	unsure       bool
}

// code takes the next line and reports whether it belongs to a block of code.
func (f *fences) code(l string) bool {
	l = strings.TrimRight(l, "\r\n")
	if f.marker != "" {
		rest := strings.TrimLeft(l, " ")
		if len(l)-len(rest) <= 3 && strings.HasPrefix(rest, f.marker) && strings.Trim(rest, f.marker[:1]+" \t") == "" {
			f.open, f.marker = "", ""
		}
		return true
	}
	if m := fence(l); m != "" && !f.unsure {
		f.open, f.marker = l, m
		return true
	}
	bare := strings.TrimLeft(l, " \t>-*+.)0123456789")
	if strings.HasPrefix(bare, "<") || strings.HasPrefix(bare, "```") || strings.HasPrefix(bare, "~~~") {
		f.unsure = true
	}
	return false
}

// fence is the run of ` or ~ with which a line opens a block of code, or nothing.
func fence(l string) string {
	if len(l) < 3 || len(l) > longFence || l[0] != '`' && l[0] != '~' {
		return ""
	}
	info := strings.TrimLeft(l, l[:1])
	if len(l)-len(info) < 3 || l[0] == '`' && strings.Contains(info, "`") {
		return ""
	}
	return l[:len(l)-len(info)]
}

// closed ends a block of code that was left open, so that what comes below is not in it. Unlike fences it has to see blocks that are indented, too.
// One that begins behind the mark of a list ends with the list.
func closed(text string) string {
	indent, marker, item, html := "", "", 0, false
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\r\n")
		rest := strings.TrimLeft(l, " ")
		before := len(l) - len(rest)
		if marker != "" && rest != "" && before < item {
			marker = "" // the list is over
		}
		bare := strings.TrimLeft(rest, " >-*+.)0123456789")
		switch {
		case marker != "":
			if before <= item+3 && strings.HasPrefix(rest, marker) && strings.Trim(rest, marker[:1]+" \t") == "" {
				marker = ""
			}
		case rest == "":
			html = false
		case html || before > 3:
		case rest[0] == '<':
			html = true // up to the next blank line a fence is text
		case bare != rest:
			marker, item = fence(bare), len(l)-len(bare)
		default:
			indent, marker, item = l[:before], fence(rest), 0
		}
	}
	if marker == "" || item > 0 {
		return text
	}
	return text + "\n" + indent + marker
}
