package markdown

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// MinSplit is the smallest limit that Split keeps: room for the fences of a block of code and some of its content.
const MinSplit = 300

// Closed closes a block of code that a text leaves open, so that text added below is not part of it.
func Closed(s string) string {
	d := read(s, prose)
	if len(d.lines) == 0 {
		return s
	}
	last := d.lines[len(d.lines)-1]
	if last.Kind != Opening && last.Kind != Code {
		return s
	}
	return strings.TrimSuffix(s, "\n") + "\n" + last.block.end()
}

// Bytes measures a text in bytes, for Split and Parts. utf8.RuneCountInString measures characters.
func Bytes(s string) int { return len(s) }

// Parts returns neutral text in one or more parts of at most limit, each neutral by itself. Text that does not fit
// otherwise is shown in blocks of code.
func Parts(s string, limit int, size func(string) int) []string {
	s = Neutral(s)
	for room := limit; ; room = room * 3 / 4 {
		parts := Split(s, room, size)
		fit := true
		for i, p := range parts {
			parts[i] = Neutral(p) // the cut may have changed its meaning
			fit = fit && size(parts[i]) <= limit
		}
		if len(parts) == 0 {
			return []string{""}
		}
		if fit {
			return parts
		}
		if room < MinSplit {
			return pieces(s, limit, size)
		}
	}
}

// pieces cuts a text anywhere, and makes each piece a block of code.
func pieces(s string, limit int, size func(string) int) (parts []string) {
	for s != "" {
		n := len(s)
		for room := limit; ; room = room * 3 / 4 {
			n = within(s[:n], room, size)
			if p := fenced(s[:n]); size(p) <= limit || room == 0 {
				parts = append(parts, p)
				break
			}
		}
		s = s[n:]
	}
	return parts
}

// Split cuts Markdown into parts of at most limit: between paragraphs if the part is then at least half full, else
// between lines, else within a line. A block of code that is cut is closed and reopened in the next part. A limit below
// MinSplit may be exceeded. size measures a text: Bytes or utf8.RuneCountInString.
func Split(s string, limit int, size func(string) int) []string {
	if !Tame(s) {
		s = Fenced("", s)
	}
	c := cutter{document: read(s, prose), limit: limit, size: size}
	var parts []string
	for c.line < len(c.lines) {
		if p := c.next(); strings.TrimSpace(p) != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// cutter cuts one part after another from a text.
type cutter struct {
	*document
	limit int
	size  func(string) int

	line, offset int // where the next part begins

	block       *block // the last argument of fences, and its results
	open, close string
}

// next returns the next part.
func (c *cutter) next() string {
	open := c.reopening()
	from := c.lines[c.line].start + c.offset
	c.advance(open)
	to, end := len(c.text), ""
	if c.line < len(c.lines) {
		to = c.lines[c.line].start + c.offset
	}
	if last := c.lineAt(max(from, to-1)); !c.ends(last, c.offset > 0) {
		_, end = c.fences(c.lines[last].block)
	}
	part := c.text[from:to]
	if open != "" {
		part = open + "\n" + part
	} else {
		part = strings.TrimLeft(part, "\r\n")
	}
	if end != "" {
		return strings.TrimSuffix(part, "\n") + "\n" + end
	}
	return strings.TrimRight(part, "\r\n")
}

// ends reports whether no block of code is open after a line, or within it.
func (c *cutter) ends(line int, within bool) bool {
	l := c.lines[line]
	return l.block == nil || l.Kind == Closing && !within
}

// advance moves on to where the next part begins.
func (c *cutter) advance(open string) {
	type place struct{ line, used int }
	here := place{c.line, c.added(open)}
	var row, paragraph place
	for i := c.line; i < len(c.lines); i++ {
		l := c.rest(i)
		end := 0
		if !c.ends(i, false) {
			_, fence := c.fences(c.lines[i].block)
			end = c.added(fence)
		}
		if here.used+c.size(strings.TrimSuffix(l, "\n"))+end > c.limit {
			break
		}
		here = place{i + 1, here.used + c.size(l)}
		if c.lines[i].Kind != Opening { // a cut after it would leave an empty block
			row = here
		}
		if c.lines[i].Kind == Text && strings.TrimSpace(l) == "" {
			paragraph = here
		}
	}
	switch {
	case here.line == len(c.lines):
		c.line, c.offset = here.line, 0
	case paragraph.line > 0 && paragraph.used >= c.limit/2:
		c.line, c.offset = paragraph.line, 0
	case row.line > 0:
		c.line, c.offset = row.line, 0
	default: // no line fits, or none after an opening fence
		room := c.limit - here.used
		if c.lines[here.line].block != nil {
			_, fence := c.fences(c.lines[here.line].block)
			room -= c.added(fence)
		}
		l := c.rest(here.line)
		n := within(strings.TrimSuffix(l, "\n"), room, c.size)
		if here.line > c.line {
			c.offset = 0
		}
		c.line, c.offset = here.line, c.offset+max(n, 1)
		if c.offset >= len(c.lines[c.line].Text) {
			c.line, c.offset = c.line+1, 0
		}
	}
}

// rest returns the remaining text of a line.
func (c *cutter) rest(i int) string {
	if i == c.line {
		return c.lines[i].Text[c.offset:]
	}
	return c.lines[i].Text
}

// added returns the size of an added line with its newline.
func (c *cutter) added(l string) int {
	if l == "" {
		return 0
	}
	return c.size(l) + 1
}

// within returns where to cut a line after at most room: after a space in the second half if there is one.
func within(l string, room int, size func(string) int) int {
	at, space := 0, 0
	for at < len(l) {
		_, n := utf8.DecodeRuneInString(l[at:])
		if room -= size(l[at : at+n]); room < 0 && at > 0 {
			break
		}
		if at += n; l[at-1] == ' ' {
			space = at
		}
	}
	if space > at/2 {
		return space
	}
	return at
}

// reopening returns a line that reopens the blocks around the beginning of a part.
func (c *cutter) reopening() string {
	l := c.lines[c.line]
	switch {
	case c.line == 0 && c.offset == 0:
		return ""
	case l.block != nil && (l.Kind != Opening || c.offset > 0):
		open, _ := c.fences(l.block)
		return open
	case l.leaf != nil && c.offset == 0 &&
		columns([]byte(l.Text))-columns([]byte(strings.TrimLeft(l.Text, " \t"))) >= 4:
		if p := c.listMarkers(l.leaf, l.start); c.size(p) <= c.limit/3 {
			return p
		}
	}
	return ""
}

// fences returns the lines that reopen and close a block. Both are empty if there is no room for them.
func (c *cutter) fences(b *block) (open, end string) {
	if b == c.block {
		return c.open, c.close
	}
	c.block, c.open, c.close = b, "", ""
	end = b.end()
	lead := containers(b.node, c.marker) + strings.Repeat(" ", b.indent)
	for _, open := range []string{lead + b.fence + b.info, lead + b.fence} {
		if c.size(open)+c.size(end) <= c.limit*2/3 {
			c.open, c.close = open, end
			break
		}
	}
	return c.open, c.close
}

func (b *block) end() string {
	return containers(b.node, indentation) + strings.Repeat(" ", b.indent) + b.fence
}

// containers returns the beginning of a line in the quotes and lists around a node; item returns that of a list item.
func containers(n ast.Node, item func(*ast.ListItem) string) string {
	var lead string
	for p := n.Parent(); p != nil; p = p.Parent() {
		switch p := p.(type) {
		case *ast.Blockquote:
			lead = "> " + lead
		case *ast.ListItem:
			lead = item(p) + lead
		}
	}
	return lead
}

// indentation returns the indentation of the lines of a list item.
func indentation(item *ast.ListItem) string { return strings.Repeat(" ", item.Offset) }

// marker returns the marker that begins a list item, padded to the column of its text: with at most four spaces after
// it.
func (d *document) marker(item *ast.ListItem) string {
	mark := "-"
	if list, ok := item.Parent().(*ast.List); ok && list.IsOrdered() {
		mark = fmt.Sprintf("%d%c", d.numbers[item], list.Marker)
	}
	right := min(max(1, item.Offset-len(mark)), 4)
	return strings.Repeat(" ", min(max(0, item.Offset-len(mark)-right), 3)) + mark + strings.Repeat(" ", right)
}

// listMarkers returns a line that begins again the lists around a line at start. It returns "" if the line is in no
// list or begins them itself.
func (d *document) listMarkers(leaf ast.Node, start int) string {
	lead := containers(leaf, func(item *ast.ListItem) string {
		if d.lines[d.lineAt(item.Pos())].start < start {
			return d.marker(item)
		}
		return ""
	})
	if strings.Trim(lead, "> ") == "" {
		return "" // each line has its quote signs
	}
	return strings.TrimRight(lead, " ")
}
