package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxLines is the memory for long lines of all runs of a Runner together, and so also the maximum length of a line
	// that must be whole. The longest line seen from the CLI had 5.6 MB (an edit of a large file, sent with the
	// original file); a limit of 1 MB, the SDKs' default, loses runs (claude-code#72226).
	MaxLines = 64 << 20
	// ownLine is the memory that each run may use for a line in addition.
	ownLine = 512 << 10
	// headBytes is the length of the part that is decoded of a line that is too long.
	headBytes = 64 << 10
)

// lineBuffers has the memory of assemblers that are between lines.
var lineBuffers = sync.Pool{New: func() any { return new([ownLine]byte) }}

// assembler joins the pieces of lines in bounded memory. It is not safe for concurrent use.
type assembler struct {
	most  int     // what is used of own: all of it, or less in tests
	spare *Budget // for longer lines

	own     *[ownLine]byte // from lineBuffers; nil between lines
	buf     []byte         // the line so far, in own or in memory from spare
	taken   int            // bytes taken from spare
	cutting bool           // long strings of the line are cut
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
		a.own, _ = lineBuffers.Get().(*[ownLine]byte)
		a.buf = a.own[:0:a.most]
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
	if a.own != nil {
		lineBuffers.Put(a.own)
	}
	a.own, a.buf, a.taken, a.cutting = nil, nil, 0, false
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
	for {
		if c.inside && c.escape == 0 {
			n := plainLength(text)
			dst = append(dst, text[:min(n, max(0, c.limit+1-c.length))]...)
			text, c.length = text[n:], c.length+n
		}
		if len(text) == 0 {
			return dst
		}
		b := text[0]
		text = text[1:]
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
}

// Bounds of a Tail.
const (
	tailLines = 100
	tailWidth = 2 << 10 // bytes of a line
)

// Tail keeps the last lines of a text. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte // line i is at i % tailLines
	count int               // lines so far
	open  bool              // the last line continues
}

// Add adds text, which may be part of a line.
func (t *Tail) Add(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(text) {
		if !t.open {
			t.lines[t.count%tailLines] = nil
			t.count++
		}
		last := &t.lines[(t.count-1)%tailLines]
		piece, ended := bytes.CutSuffix(line, []byte("\n"))
		*last = append(*last, piece[:min(len(piece), tailWidth-len(*last))]...)
		t.open = !ended
	}
}

// String joins the lines. It says so if there were more.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := max(0, t.count-tailLines)
	lines := make([]string, 0, tailLines+1)
	if first > 0 {
		lines = append(lines, fmt.Sprintf("[only the last %d lines]", tailLines))
	}
	for i := first; i < t.count; i++ {
		lines = append(lines, strings.ToValidUTF8(string(t.lines[i%tailLines]), ""))
	}
	return strings.Join(lines, "\n")
}

// writeLimit limits one write: a CLI that has not emptied its pipe for this long never will.
const writeLimit = time.Minute

// Stdin writes the CLI's input, one JSON object per line. A line that is not JSON kills the CLI (2.1.329), so
// Stdin marshals all values itself. It is safe for concurrent use, but must not be used on the goroutine that reads
// stdout.
type Stdin struct {
	f     *os.File
	limit atomic.Int64 // of a write, in nanoseconds; 0: writeLimit

	mu     sync.Mutex
	closed bool
}

// NewStdin returns a Stdin that writes to f and closes it.
func NewStdin(f *os.File) *Stdin { return &Stdin{f: f} }

// Send writes one value. It fails if the CLI has exited or does not read.
func (s *Stdin) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal CLI input: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	_ = s.f.SetWriteDeadline(time.Now().Add(cmp.Or(time.Duration(s.limit.Load()), writeLimit)))
	if _, err := s.f.Write(append(line, '\n')); err != nil {
		// Part of the line may be in the pipe; the CLI would read the next value as its end.
		s.closed = true
		_ = s.f.Close()
		return fmt.Errorf("write CLI input: %w", err)
	}
	return nil
}

// SetWriteLimit makes the current write and every later one fail after d.
func (s *Stdin) SetWriteLimit(d time.Duration) {
	s.limit.Store(int64(d))
	_ = s.f.SetWriteDeadline(time.Now().Add(d))
}

// Close ends the input, so that the CLI finishes its work and exits. It may be called again.
func (s *Stdin) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.f.Close()
	}
}
