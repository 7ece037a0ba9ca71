package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readLines returns what lines makes of r, and the lines that long puts together of it; those that are not whole end in
// "…".
func readLines(t *testing.T, in *lineReader, long *assembler) (text string, got []string) {
	t.Helper()
	var all strings.Builder
	for {
		p, err := in.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) || len(p.text) > 0 {
				t.Errorf("%q, %v at the end", p.text, err)
			}
			return all.String(), got
		}
		all.Write(p.text)
		if line, whole := long.Add(p); whole {
			got = append(got, string(line))
		} else if line != nil {
			got = append(got, string(line)+"…")
		} else {
			continue
		}
		long.Release()
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10) // more than the reader's buffer
	text, got := readLines(t, newLineReader(strings.NewReader("a\n\n"+long+"\nlast")), &assembler{limit: MaxLine})
	if diff := cmp.Diff([]string{"a\n", "\n", long + "\n", "last"}, got); diff != "" {
		t.Error(diff)
	}
	if text != "a\n\n"+long+"\nlast" {
		t.Error("a piece is missing")
	}
}

// A line that is too long comes in small pieces, its beginning is known, and the line after it is whole again.
func TestLinesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	in := newLineReader(io.MultiReader(io.LimitReader(endless{}, size), strings.NewReader("\nnext\n")))
	long := &assembler{limit: MaxLine}
	var total int64
	for lost := false; ; {
		p, err := in.Next()
		if err != nil || len(p.text) > maxPiece || p.first != (total == 0) {
			t.Fatalf("a piece of %d bytes after %d, first %t, err %v", len(p.text), total, p.first, err)
		}
		total += int64(len(p.text))
		line, whole := long.Add(p)
		if line != nil {
			if lost || whole || int64(len(line)) != total || total > MaxLine+maxPiece {
				t.Fatalf("%d bytes of a line, whole %t, after %d", len(line), whole, total)
			}
			lost = true
			long.Release()
		}
		if lost && long.buf != nil {
			t.Fatalf("a buffer of %d is kept", cap(long.buf))
		}
		if p.last {
			break
		}
	}
	if total != size+1 {
		t.Errorf("%d bytes of %d", total, size+1)
	}
	if _, got := readLines(t, in, long); !cmp.Equal(got, []string{"next\n"}) {
		t.Errorf("then came %q", got)
	}
}

type endless struct{}

var manyX = strings.Repeat("x", 64<<10)

func (endless) Read(b []byte) (int, error) {
	return copy(b, manyX), nil // by the byte it takes seconds under the race detector
}

func TestReadErrorComesAfterTheText(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	in := newLineReader(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	if p, err := in.Next(); string(p.text) != "half" || !p.last || err != nil {
		t.Errorf("%q, %v", p.text, err)
	}
	if _, err := in.Next(); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

// FuzzLines holds the lines against those that bytes.Lines finds, whatever their limit and however the text arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\r\nlast"), []byte{1, 2}, uint8(20))
	f.Add([]byte("0123456789012345678901234567890123456789\nnext\n"), []byte{}, uint8(0))
	f.Add([]byte("0123456789012345\n0123456789012345678901234567890123456789"), []byte{16}, uint8(17))
	f.Add([]byte("0123456789012345"), []byte{}, uint8(40))
	f.Fuzz(func(t *testing.T, text, sizes []byte, limit uint8) {
		const size = 16 // the least that bufio reads at once
		long := &assembler{limit: max(size, int(limit))}
		in := &lineReader{r: bufio.NewReaderSize(&inSizes{text, sizes, 0}, size)}
		pieces, got := readLines(t, in, long)
		var want []string
		for line := range bytes.Lines(text) {
			want = append(want, string(line))
		}
		if pieces != string(text) || len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, line := range want {
			head, lost := strings.CutSuffix(got[i], "…")
			if lost && len(line) > long.limit && strings.HasPrefix(line, head) || got[i] == line && len(line) <= long.limit {
				continue
			}
			t.Errorf("line %d of %d bytes became %q, want %q", i, len(line), got[i], line)
		}
		if long.buf != nil {
			t.Errorf("%d bytes are kept", cap(long.buf))
		}
	})
}

// inSizes reads as many bytes at once as sizes say, in turn.
type inSizes struct {
	text, sizes []byte
	n           int
}

func (r *inSizes) Read(b []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	if len(r.sizes) > 0 {
		b = b[:min(len(b), 1+int(r.sizes[r.n%len(r.sizes)]))]
		r.n++
	}
	n := copy(b, r.text)
	r.text = r.text[n:]
	return n, nil
}
