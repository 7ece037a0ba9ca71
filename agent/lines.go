package agent

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"sync/atomic"
)

const (
	// maxLines is how much all runs of a Runner together hold of long lines, and so also how long a line may be. The longest seen from the
	// real CLI was 5.6 MB (an edit of a large file, sent with its whole original); a limit of 1 MB, the SDKs' default, loses runs
	// (claude-code#72226).
	maxLines = 64 << 20
	// ownLine is how much of a line each reader may hold besides.
	ownLine = 1 << 20
	// fragment is the largest piece of a line that is too long to be held.
	fragment = 64 << 10
)

// lines reads newline-terminated lines of any length. Not safe for concurrent use.
type lines struct {
	r     *bufio.Reader
	own   []byte  // at most most long, and kept
	most  int     // ownLine; tests have less
	spare *budget // for longer lines
	taken int     // of it

	buf  []byte   // of a line that is longer than the reader's buffer: own, or one that spare pays for
	rest [][]byte // of a line that is too long: what was read of it, in fragments, and is not yet handed on
	long bool     // and there is more of it to come
}

// newLines reads from r. Lines longer than ownLine are held at the expense of spare; nil: never.
func newLines(r io.Reader, spare *budget) *lines {
	return &lines{r: bufio.NewReaderSize(&terminated{r: r}, fragment), most: ownLine, spare: spare}
}

// part says what of a line Next returned.
type part int

const (
	wholeLine part = iota
	lineHead       // the first fragment of a line that is too long to be held
	lineRest       // a later one
)

// Next returns the next line, or the next fragment of one that is too long to be held. Every line ends with a newline, also a last one
// that came without. text is valid until the following call. The error is io.EOF at the end.
func (l *lines) Next() (text []byte, p part, err error) {
	if len(l.rest) > 0 {
		return l.next(), lineRest, nil
	}
	l.release()
	for {
		text, err := l.r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case err != nil && !full:
			return nil, wholeLine, err
		case l.long:
			l.long = full
			return text, lineRest, nil
		case !full && len(l.buf) == 0:
			return text, wholeLine, nil // the usual case: no copy
		case !l.hold(text):
			l.rest, l.long = slices.Collect(slices.Chunk(l.buf, fragment)), full
			l.rest = append(l.rest, text)
			return l.next(), lineHead, nil
		case !full:
			return l.buf, wholeLine, nil
		}
	}
}

// next takes a fragment out of rest.
func (l *lines) next() []byte {
	text := l.rest[0]
	l.rest = l.rest[1:]
	return text
}

// hold appends text to buf, if that may grow so far.
func (l *lines) hold(text []byte) bool {
	need, size := len(l.buf)+len(text), 2*cap(l.buf)
	switch {
	case need <= cap(l.buf):
	case need <= l.most:
		l.own = append(make([]byte, 0, max(need, min(size, l.most))), l.buf...)
		l.buf = l.own
	case l.spare.Take(max(need, size) - l.taken):
		l.taken = max(need, size)
		l.buf = append(make([]byte, 0, l.taken), l.buf...)
	default:
		return false
	}
	l.buf = append(l.buf, text...)
	return true
}

// release gives back what the previous line was held in.
func (l *lines) release() {
	l.buf = l.own[:0]
	l.spare.Give(l.taken)
	l.taken = 0
}

// Drained reports that nothing more has arrived yet: a good moment to flush what was written so far.
func (l *lines) Drained() bool { return l.r.Buffered() == 0 && len(l.rest) == 0 }

// budget bounds the memory of several readers together. Whoever does not get what it asks for goes on without: nobody waits, and so one
// run cannot stop another. nil has nothing to give. Safe for concurrent use.
type budget struct {
	total int64 // bytes
	used  atomic.Int64
}

func (b *budget) Take(n int) bool {
	if b == nil {
		return false
	}
	if b.used.Add(int64(n)) > b.total {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

func (b *budget) Give(n int) {
	if n > 0 {
		b.used.Add(-int64(n))
	}
}

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
