package markdown

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// MinSplit is the least limit that Split keeps: room for the lines that begin and end a block of code, and for something in it.
const MinSplit = 300

// Closed ends a block of code that a text leaves open, so that what comes below is not in it.
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

// Bytes measures a text in bytes, for Split and Parts. utf8.RuneCountInString measures it in characters.
func Bytes(s string) int { return len(s) }

// Parts is Neutral text in parts of at most limit, each neutral by itself; at least one. What fits in no other way is shown as it is, in blocks
// of code.
func Parts(s string, limit int, size func(string) int) []string {
	s = Neutral(s)
	for room := limit; ; room = room * 3 / 4 {
		parts := Split(s, room, size)
		fit := true
		for i, p := range parts {
			parts[i] = Neutral(p) // what was cut can be something else
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

// Split cuts Markdown into parts of at most limit: between paragraphs where that leaves a part at least half full, else between lines, else
// within a line. A block of code that is cut ends with its part and begins anew in the next one. A limit below MinSplit may not be kept. size
// measures a text: Bytes, or utf8.RuneCountInString.
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

// cutter takes one part after another from a text.
type cutter struct {
	*document
	limit int
	size  func(string) int

	line, offset int // where the next part begins

	block       *block // the one that was looked at last, and the lines around a part of it
	open, close string
}

// next is the next part.
func (c *cutter) next() string {
	open := c.reopening()
	from := c.lines[c.line].start + c.offset
	c.advance(open)
	to, end := len(c.text), ""
	if c.line < len(c.lines) {
		to = c.lines[c.line].start + c.offset
	}
	if last := c.lineAt(max(from, to-1)); !c.ends(last, c.offset > 0) {
		end = c.end(last)
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

// ends reports whether no block of code is open behind a line, or within it.
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
			end = c.added(c.end(i))
		}
		if here.used+c.size(strings.TrimSuffix(l, "\n"))+end > c.limit {
			break
		}
		here = place{i + 1, here.used + c.size(l)}
		if c.lines[i].Kind != Opening { // behind it an empty block would be left
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
	default: // not even a line fits, or none behind the one that begins a block
		room := c.limit - here.used
		if c.lines[here.line].block != nil {
			room -= c.added(c.end(here.line))
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

// rest is what is left of a line.
func (c *cutter) rest(i int) string {
	if i == c.line {
		return c.lines[i].Text[c.offset:]
	}
	return c.lines[i].Text
}

// added is the size of a line that is added, with the newline it takes.
func (c *cutter) added(l string) int {
	if l == "" {
		return 0
	}
	return c.size(l) + 1
}

// within finds where to cut a line after at most room: behind a space in the second half if there is one.
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

// reopening is the line with which a part begins what the one before it had begun.
func (c *cutter) reopening() string {
	l := c.lines[c.line]
	switch {
	case c.line == 0 && c.offset == 0:
		return ""
	case l.block != nil && (l.Kind != Opening || c.offset > 0):
		return c.begin(c.line)
	case l.leaf != nil && c.offset == 0 && columns([]byte(l.Text))-columns([]byte(strings.TrimLeft(l.Text, " \t"))) >= 4:
		if p := items(l.leaf, l.start, c.document); c.size(p) <= c.limit/3 {
			return p
		}
	}
	return ""
}

// begin is the line that begins the block of a line anew, empty where there is no room for it.
func (c *cutter) begin(i int) string { open, _ := c.around(c.lines[i].block); return open }

// end is the line that ends the block of a line, empty where there would be no room to begin it anew.
func (c *cutter) end(i int) string { _, end := c.around(c.lines[i].block); return end }

// around are both.
func (c *cutter) around(b *block) (open, end string) {
	if b == c.block {
		return c.open, c.close
	}
	c.block, c.open, c.close = b, "", ""
	end = b.end()
	lead := containers(b.node, c.numbers) + strings.Repeat(" ", b.indent)
	for _, open := range []string{lead + b.fence + b.info, lead + b.fence} {
		if c.size(open)+c.size(end) <= c.limit*2/3 {
			c.open, c.close = open, end
			break
		}
	}
	return c.open, c.close
}

func (b *block) end() string {
	return containers(b.node, nil) + strings.Repeat(" ", b.indent) + b.fence
}

// containers is what stands before a line of a block because of the quotes and lists that it is in. With the numbers of items it begins them.
func containers(n ast.Node, numbers map[*ast.ListItem]int) string {
	var lead string
	for p := n.Parent(); p != nil; p = p.Parent() {
		switch p := p.(type) {
		case *ast.Blockquote:
			lead = "> " + lead
		case *ast.ListItem:
			if numbers != nil {
				lead = padded(mark(p, numbers[p]), p.Offset) + lead
			} else {
				lead = strings.Repeat(" ", p.Offset) + lead
			}
		}
	}
	return lead
}

// width is how wide that is.
func width(n ast.Node) (w int) { return len(containers(n, nil)) }

// mark is the mark of an item of a list.
func mark(item *ast.ListItem, number int) string {
	list, ok := item.Parent().(*ast.List)
	if !ok || !list.IsOrdered() {
		return "-"
	}
	return fmt.Sprintf("%d%c", number, list.Marker)
}

// padded is a mark that leaves its text at a column: at most four spaces stand behind it.
func padded(mark string, width int) string {
	right := min(max(1, width-len(mark)), 4)
	return strings.Repeat(" ", min(max(0, width-len(mark)-right), 3)) + mark + strings.Repeat(" ", right)
}

// items is a line that begins the lists anew in which a line at that place stands; empty where it begins them itself or is in none.
func items(leaf ast.Node, start int, d *document) string {
	var lead string
	for p := leaf.Parent(); p != nil; p = p.Parent() {
		switch p := p.(type) {
		case *ast.Blockquote:
			lead = "> " + lead
		case *ast.ListItem:
			if d.lines[d.lineAt(p.Pos())].start < start {
				lead = padded(mark(p, d.numbers[p]), p.Offset) + lead
			}
		}
	}
	if strings.Trim(lead, "> ") == "" {
		return "" // quotes have their sign in each line
	}
	return strings.TrimRight(lead, " ")
}
