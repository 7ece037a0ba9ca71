package agent

import (
	"bufio"
	"errors"
	"io"
)

// How much of the CLI's output is read at once. An idle run keeps as much memory.
const (
	stdoutPiece = 32 << 10
	stderrPiece = 8 << 10
)

// lines splits what it reads at newlines. It holds no line: one that is longer than its buffer comes in pieces. Not safe for concurrent use.
type lines struct {
	r      *bufio.Reader
	inside bool // a line
}

// newLines reads from r, as much as size at once.
func newLines(r io.Reader, size int) *lines {
	return &lines{r: bufio.NewReaderSize(&terminated{r: r}, size)}
}

// piece is a line, or a part of one. Every line ends with a newline, also a last one that came without.
type piece struct {
	text        []byte
	first, last bool // of its line
}

// Next returns the next piece; it is valid until the following call. The error is io.EOF at the end.
func (l *lines) Next() (piece, error) {
	text, err := l.r.ReadSlice('\n')
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full {
		return piece{}, err
	}
	p := piece{text: text, first: !l.inside, last: !full}
	l.inside = full
	return p, nil
}

// Drained reports that nothing more has arrived yet: a good moment to flush what was written so far.
func (l *lines) Drained() bool { return l.r.Buffered() == 0 }

// terminated adds the newline that the last line of r lacks.
type terminated struct {
	r    io.Reader
	err  error
	open bool // inside a line
}

func (t *terminated) Read(b []byte) (n int, err error) {
	if t.err == nil {
		n, t.err = t.r.Read(b)
		if n > 0 {
			t.open = b[n-1] != '\n'
		}
		if n > 0 || t.err == nil {
			return n, nil
		}
	}
	if t.open && len(b) > 0 {
		t.open, b[0] = false, '\n'
		return 1, nil
	}
	return 0, t.err
}
