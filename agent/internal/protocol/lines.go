package protocol

import (
	"bufio"
	"errors"
	"io"
)

// Sizes of the read buffers. An idle run keeps them.
const (
	stdoutPiece = 32 << 10
	stderrPiece = 8 << 10
)

// lineReader splits its input at newlines. It returns a line that is longer than its buffer in pieces, so it never
// holds a line. It is not safe for concurrent use.
type lineReader struct {
	r      *bufio.Reader
	inside bool // the next piece continues a line
}

// newLineReader returns a reader of r with a buffer of the given size.
func newLineReader(r io.Reader, size int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(&terminated{r: r}, size)}
}

// piece is a line or a part of one. Every line ends with a newline, even if the last line of the input did not.
type piece struct {
	text        []byte
	first, last bool // in its line
}

// Next returns the next piece, which is valid until the following call. At the end the error is io.EOF.
func (l *lineReader) Next() (piece, error) {
	text, err := l.r.ReadSlice('\n')
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full {
		return piece{}, err
	}
	p := piece{text: text, first: !l.inside, last: !full}
	l.inside = full
	return p, nil
}

// Drained reports whether all input that has arrived was returned. That is a good moment to flush a log.
func (l *lineReader) Drained() bool { return l.r.Buffered() == 0 }

// terminated adds the newline that the last line of r may lack.
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
