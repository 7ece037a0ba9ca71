package agent

import (
	"bufio"
	"errors"
	"io"
)

// maxLine is how much of one line is decoded. The longest seen from the real CLI was 5.6 MB (an edit of a large file, sent with its
// whole original); a limit of 1 MB, the SDKs' default, loses runs (claude-code#72226).
const maxLine = 64 << 20

// lines reads newline-terminated lines of any length. Not safe for concurrent use.
type lines struct {
	r   *bufio.Reader
	buf []byte
	cut bool // inside a line whose beginning was already returned
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next piece without its newline: a whole line, or, of a line longer than maxLine, one fragment after another
// with cut set, the last of which has more unset. The slice is valid until the following call. The error is io.EOF at the end; a
// last line without a newline is returned before it.
func (l *lines) Next() (piece []byte, cut, more bool, err error) {
	l.buf = l.buf[:0]
	for {
		frag, err := l.r.ReadSlice('\n')
		switch {
		case err == nil:
			frag = frag[:len(frag)-1]
			if len(l.buf) == 0 {
				return frag, l.wasCut(), false, nil // the usual case: no copy
			}
			l.buf = append(l.buf, frag...)
			return l.buf, l.wasCut(), false, nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.buf = append(l.buf, frag...)
			if len(l.buf) >= maxLine {
				l.cut = true
				return l.buf, true, true, nil
			}
		case len(frag)+len(l.buf) > 0:
			l.buf = append(l.buf, frag...)
			return l.buf, l.wasCut(), false, nil
		default:
			return nil, false, false, err
		}
	}
}

func (l *lines) wasCut() bool { c := l.cut; l.cut = false; return c }

// Drained reports that nothing more has arrived yet: a good moment to flush what was written so far.
func (l *lines) Drained() bool { return l.r.Buffered() == 0 }
