package protocol

import (
	"bufio"
	"errors"
	"io"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// maxPiece is the length of the longest piece of a line.
const maxPiece = 64 << 10

// lineReader splits its input at newlines. It returns a line that is longer than its buffer in pieces, so it never
// holds a line. It is not safe for concurrent use.
type lineReader struct {
	r      *bufio.Reader
	inside bool // the next piece continues a line
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, maxPiece)} }

// piece is a line or a part of one. Every line ends with a newline, except perhaps the last of the input.
type piece struct {
	text        []byte
	first, last bool // in its line
}

// Next returns the next piece, which is valid until the following call. At the end the error is io.EOF.
func (l *lineReader) Next() (piece, error) {
	text, err := l.r.ReadSlice('\n')
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full && len(text) == 0 && !l.inside {
		return piece{}, err
	}
	p := piece{text: text, first: !l.inside, last: !full}
	l.inside = full
	return p, nil
}

// Drained reports whether all input that has arrived was returned. That is a good moment to flush a log.
func (l *lineReader) Drained() bool { return l.r.Buffered() == 0 }

// ReadText reads r to its end, and calls show with the text as it arrives: plain, and redacted as one text, since a
// private key has many lines. The argument of show is valid until show returns.
func ReadText(r io.Reader, redactor *redact.Redactor, show func(text []byte)) {
	in, clean := newLineReader(r), redactor.Stream()
	for {
		p, err := in.Next()
		if err != nil {
			show(clean.Flush())
			return
		}
		show(clean.Write(redact.Plain(p.text)))
	}
}
