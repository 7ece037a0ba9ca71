package agent

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

// readLines puts together what lines returns, and how often it returned each part.
func readLines(t *testing.T, l *lines) (text []string, parts [3]int) {
	t.Helper()
	for {
		piece, part, err := l.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) || len(piece) > 0 {
				t.Errorf("%q, %v at the end", piece, err)
			}
			return text, parts
		}
		if parts[part]++; part == lineRest && len(text) > 0 {
			text[len(text)-1] += string(piece)
		} else {
			text = append(text, string(piece))
		}
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10) // more than the reader's buffer
	got, parts := readLines(t, newLines(strings.NewReader("a\n\n"+long+"\nlast"), nil))
	if diff := cmp.Diff([]string{"a\n", "\n", long + "\n", "last\n"}, got); diff != "" || parts[wholeLine] != 4 {
		t.Errorf("parts %d\n%s", parts, diff)
	}
}

// A line that is longer than all memory for lines is handed on in small pieces, and the line after it is whole again.
func TestLinesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	spare := &budget{total: maxLines}
	l := newLines(io.MultiReader(io.LimitReader(endless{}, size), strings.NewReader("\nnext\n")), spare)
	var total int
	for {
		piece, part, err := l.Next()
		if err != nil || part == wholeLine || (part == lineHead) != (total == 0) || len(piece) > fragment {
			t.Fatalf("part %d of %d bytes after %d, err %v", part, len(piece), total, err)
		}
		if total > maxLines && (spare.used.Load() > 0 || cap(l.buf) > ownLine) {
			t.Fatalf("holds %d of the budget and a buffer of %d when only fragments are to come", spare.used.Load(), cap(l.buf))
		}
		if total += len(piece); piece[len(piece)-1] == '\n' {
			break
		}
	}
	if total != size+1 {
		t.Errorf("%d bytes of %d", total, size+1)
	}
	if piece, part, err := l.Next(); string(piece) != "next\n" || part != wholeLine || err != nil {
		t.Errorf("next line %q, part %d, %v", piece, part, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// What one reader holds another cannot have: its line is cut, and nobody waits.
func TestLinesShareTheirMemory(t *testing.T) {
	t.Parallel()
	spare := &budget{total: 4 * ownLine}
	text := strings.Repeat("x", 2*ownLine) + "\nshort\n"
	a, b := newLines(strings.NewReader(text), spare), newLines(strings.NewReader(text+text), spare)
	if line, part, err := a.Next(); len(line) != 2*ownLine+1 || part != wholeLine || err != nil {
		t.Fatalf("%d bytes, part %d, %v", len(line), part, err)
	}
	if line, part, err := b.Next(); len(line) != fragment || part != lineHead || err != nil {
		t.Fatalf("%d bytes, part %d, %v, while the other has its line", len(line), part, err)
	}
	if _, _, err := a.Next(); err != nil || spare.used.Load() != 0 || cap(a.buf) > ownLine {
		t.Errorf("%v; %d bytes are not given back, %d are kept", err, spare.used.Load(), cap(a.buf))
	}
	if _, parts := readLines(t, b); parts[wholeLine] != 3 {
		t.Errorf("parts %d: a line that comes when there is room is not whole", parts)
	}
}

func TestReadErrorComesAfterTheText(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	l := newLines(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), nil)
	if line, _, err := l.Next(); string(line) != "half\n" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if _, _, err := l.Next(); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

// FuzzLines holds the lines against those that bytes.SplitAfter finds, whatever the memory and however the text arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\r\nlast"), []byte{1, 2}, uint8(20), uint8(40))
	f.Add([]byte("0123456789012345678901234567890123456789\nnext\n"), []byte{}, uint8(0), uint8(0))
	f.Add([]byte("0123456789012345\n0123456789012345678901234567890123456789"), []byte{16}, uint8(17), uint8(200))
	f.Fuzz(func(t *testing.T, text, sizes []byte, most, total uint8) {
		spare := &budget{total: int64(total)}
		l := newLines(nil, spare)
		l.r, l.most = bufio.NewReaderSize(&terminated{r: &inSizes{text, sizes, 0}}, 16), int(most)
		got, _ := readLines(t, l)
		var want []string
		for line := range bytes.Lines(text) {
			want = append(want, strings.TrimSuffix(string(line), "\n")+"\n")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if spare.used.Load() != 0 || cap(l.buf) > int(most) {
			t.Errorf("%d bytes are not given back, %d are kept", spare.used.Load(), cap(l.buf))
		}

		l = newLines(nil, spare)
		l.r, l.most = bufio.NewReaderSize(&terminated{r: bytes.NewReader(text)}, 16), int(most)
		for {
			line, part, err := l.Next()
			if err != nil {
				break
			}
			if n := len(line); part == wholeLine && n > max(16, int(most), int(total)) || part == lineHead && bytes.HasSuffix(line, []byte("\n")) && n <= max(16, int(most)) {
				t.Errorf("part %d has %d bytes", part, n)
			}
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
