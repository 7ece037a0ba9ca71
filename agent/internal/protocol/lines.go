package protocol

import (
	"bufio"
	"errors"
	"io"
	"sync"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// maxPiece is the length of the longest piece of a line.
const maxPiece = 48 << 10

// readBuffers has the buffers of readers that have returned all they have read, so that a run that waits needs none.
var readBuffers = newReadBuffers(maxPiece)

func newReadBuffers(size int) *sync.Pool {
	return &sync.Pool{New: func() any { return bufio.NewReaderSize(nil, size) }}
}

// lineReader splits its input at newlines. It returns a line that is longer than its buffer in pieces, so it never
// holds a line. It is not safe for concurrent use.
type lineReader struct {
	in      *terminated
	buffers *sync.Pool
	r       *bufio.Reader // from buffers; nil while the reader waits for a line
	inside  bool          // the next piece continues a line
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: &terminated{r: r}, buffers: readBuffers}
}

// OnRead makes the reader call seen after each read, before it returns any of that in pieces.
func (l *lineReader) OnRead(seen func()) { l.in.seen = seen }

// piece is a line or a part of one. Every line ends with a newline, even if the last line of the input did not.
type piece struct {
	text        []byte
	first, last bool // in its line
}

// Next returns the next piece, which is valid until the following call. At the end the error is io.EOF.
func (l *lineReader) Next() (piece, error) {
	if err := l.wait(); err != nil {
		return piece{}, err
	}
	text, err := l.r.ReadSlice('\n')
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full {
		return piece{}, err
	}
	p := piece{text: text, first: !l.inside, last: !full}
	l.inside = full
	return p, nil
}

// wait waits for the next line without a buffer, unless a part of it was read.
func (l *lineReader) wait() error {
	if l.inside || !l.Drained() {
		return nil
	}
	if l.r != nil {
		l.r.Reset(nil)
		l.buffers.Put(l.r)
		l.r = nil
	}
	if err := l.in.wait(); err != nil {
		return err
	}
	l.r, _ = l.buffers.Get().(*bufio.Reader)
	l.r.Reset(l.in)
	return nil
}

// Drained reports whether all input that has arrived was returned. That is a good moment to flush a log.
func (l *lineReader) Drained() bool {
	return len(l.in.early) == 0 && (l.r == nil || l.r.Buffered() == 0)
}

// terminated adds the newline that the last line of r may lack.
type terminated struct {
	r     io.Reader
	seen  func() // called after each read; may be nil
	err   error
	open  bool // inside a line
	own   [1 << 10]byte
	early []byte // what wait has read, in own
}

// wait waits until Read has something to return.
func (t *terminated) wait() error {
	n, err := t.Read(t.own[:])
	t.early = t.own[:n]
	return err
}

func (t *terminated) Read(b []byte) (n int, err error) {
	if len(t.early) > 0 {
		n = copy(b, t.early)
		t.early = t.early[n:]
		return n, nil
	}
	n, err = t.read(b)
	if n > 0 && t.seen != nil {
		t.seen()
	}
	return n, err
}

func (t *terminated) read(b []byte) (n int, err error) {
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
