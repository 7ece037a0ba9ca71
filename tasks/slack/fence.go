package slack

import "strings"

// longFence is the length up to which a line that begins a block of code is one: it is repeated where a block is cut.
const longFence = 100

// fence follows the blocks of code through the lines of a Markdown text. Outside them it is zero. It minds no indentation, because
// blocks in lists are indented.
type fence struct {
	open   string // the line that began the block
	indent string
	marker string // the backticks or tildes that end it
}

// line takes the next line and reports whether it begins or ends a block.
func (f *fence) line(l string) bool {
	l = strings.TrimRight(l, "\r\n")
	bare := strings.TrimLeft(l, " \t")
	if f.marker != "" {
		if !strings.HasPrefix(bare, f.marker) || strings.Trim(bare, f.marker[:1]+" \t") != "" {
			return false
		}
		*f = fence{}
		return true
	}
	if len(l) > longFence || !strings.HasPrefix(bare, "```") && !strings.HasPrefix(bare, "~~~") {
		return false
	}
	info := strings.TrimLeft(bare, bare[:1])
	if bare[0] == '`' && strings.Contains(info, "`") {
		return false // code in a line
	}
	*f = fence{open: l, indent: l[:len(l)-len(bare)], marker: bare[:len(bare)-len(info)]}
	return true
}

// end is the line that ends the block, empty outside.
func (f fence) end() string {
	if f.marker == "" {
		return ""
	}
	return f.indent + f.marker
}
