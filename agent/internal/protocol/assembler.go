package protocol

import "sync/atomic"

const (
	// MaxLines is the memory for long lines of all runs of a Runner together, and so also the maximum length of a line
	// that must be whole. The longest line seen from the CLI had 5.6 MB (an edit of a large file, sent with the
	// original file); a limit of 1 MB, the SDKs' default, loses runs (claude-code#72226).
	MaxLines = 64 << 20
	// ownLine is the memory that each run may use for a line in addition.
	ownLine = 1 << 20
	// headBytes is the length of the part that is decoded of a line that is too long.
	headBytes = 64 << 10
)

// assembler joins the pieces of lines in bounded memory. It is not safe for concurrent use.
type assembler struct {
	most  int     // maximum size of own: ownLine, or less in tests
	spare *Budget // for longer lines

	own     []byte // kept between lines
	buf     []byte // the line so far, in own or in memory from spare
	taken   int    // bytes taken from spare
	cutting bool   // long strings of the line are cut
	cutter  cutter
	lost    bool // the line is too long, and its rest is ignored
}

func newAssembler(spare *Budget) *assembler {
	return &assembler{most: ownLine, spare: spare, cutter: cutter{limit: stringBytes}}
}

// Add adds a piece. It returns the line if the piece completes it, otherwise nil. For a line that is too long it
// returns its beginning, once, with whole unset. The line is valid until Release.
func (a *assembler) Add(p piece) (line []byte, whole bool) {
	a.lost = a.lost && !p.first
	switch {
	case p.first && p.last:
		return p.text, true // the usual case: no copy
	case a.lost:
		return nil, false
	case !a.hold(p.text):
		a.lost = true
		return a.buf[:min(len(a.buf), headBytes)], false
	case !p.last:
		return nil, false
	}
	return a.buf, true
}

// hold appends text to the line if there is memory for it.
func (a *assembler) hold(text []byte) bool {
	need, size := len(a.buf)+len(text), 2*cap(a.buf)
	switch {
	case need <= cap(a.buf):
	case need <= a.most:
		a.own = append(make([]byte, 0, max(need, min(size, a.most))), a.buf...)
		a.buf = a.own
	case !a.cutting && bulky(a.buf):
		a.cutting = true
		a.buf = a.cutter.Append(a.buf[:0], a.buf)
		return a.hold(text)
	case a.spare.take(max(need, size) - a.taken):
		a.taken = max(need, size)
		a.buf = append(make([]byte, 0, a.taken), a.buf...)
	default:
		return false
	}
	if a.cutting {
		a.buf = a.cutter.Append(a.buf, text)
	} else {
		a.buf = append(a.buf, text...)
	}
	return true
}

// bulky reports whether a line that begins with text is output of tools, whose long strings may be cut. Answers must be
// whole, and so must questions, which are answered with their own input.
func bulky(text []byte) bool {
	l, ok := decodeHead(text[:min(len(text), headBytes)])
	return ok && l.Type == "user"
}

// Release frees the memory of the latest line, so that a waiting run does not keep it.
func (a *assembler) Release() {
	if a.taken > 0 {
		a.spare.give(a.taken)
	}
	a.buf, a.taken, a.cutting = a.own[:0], 0, false
	a.cutter = cutter{limit: a.cutter.limit}
}

// Budget limits the memory of several runs together. Taking memory never waits, so that no run can block another. It is
// safe for concurrent use.
type Budget struct {
	total int64
	used  atomic.Int64
}

// NewBudget returns a budget of n bytes.
func NewBudget(n int64) *Budget { return &Budget{total: n} }

func (b *Budget) take(n int) bool {
	if b.used.Add(int64(n)) > b.total {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *Budget) give(n int) { b.used.Add(-int64(n)) }

// stringBytes is the length to which strings are cut.
const stringBytes = 64 << 10

// cutter shortens the strings of a JSON text that arrives in pieces. The result is valid JSON if the text is.
type cutter struct {
	limit  int  // maximum bytes of a string, rounded up to a character
	inside bool // inside a string
	length int  // of the string so far
	escape int  // remaining bytes of an escape
	drop   bool // the character or escape is beyond the limit
}

// Append appends the shortened text to dst, which may be the beginning of text.
func (c *cutter) Append(dst, text []byte) []byte {
	for _, b := range text {
		switch {
		case !c.inside:
			c.inside, c.length = b == '"', 0
		case c.escape > 0:
			if c.escape--; b == 'u' { // four hexadecimal digits follow
				c.escape = 4
			}
		case b == '"':
			c.inside, c.drop = false, false
		default:
			if c.drop = c.length > c.limit; b == '\\' {
				c.escape = 1
			}
		}
		if c.length++; !c.drop {
			dst = append(dst, b)
		}
	}
	return dst
}
