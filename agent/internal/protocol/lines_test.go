package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
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
	text, got := readLines(t, newLineReader(strings.NewReader("a\n\n"+long+"\nlast")), newAssembler(&Budget{}))
	if diff := cmp.Diff([]string{"a\n", "\n", long + "\n", "last\n"}, got); diff != "" {
		t.Error(diff)
	}
	if text != "a\n\n"+long+"\nlast\n" {
		t.Error("a piece is missing")
	}
}

// A line that is longer than all memory for lines comes in small pieces, its beginning is known, and the line after it
// is whole again.
func TestLinesBeyondTheLimit(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	spare := &Budget{total: MaxLines}
	in := newLineReader(io.MultiReader(io.LimitReader(endless{}, size), strings.NewReader("\nnext\n")))
	long := newAssembler(spare)
	var total int64
	for lost := false; ; {
		p, err := in.Next()
		if err != nil || len(p.text) > maxPiece || p.first != (total == 0) {
			t.Fatalf("a piece of %d bytes after %d, first %t, err %v", len(p.text), total, p.first, err)
		}
		total += int64(len(p.text))
		line, whole := long.Add(p)
		if line != nil {
			if lost || whole || len(line) != headBytes || total > MaxLines+maxPiece {
				t.Fatalf("%d bytes of a line, whole %t, after %d", len(line), whole, total)
			}
			lost = true
			long.Release()
		}
		if lost && (spare.used.Load() > 0 || cap(long.buf) > ownLine) {
			t.Fatalf("%d bytes of the budget and a buffer of %d are kept", spare.used.Load(), cap(long.buf))
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

// If one run holds the memory, another run's line should be dropped without waiting. Released memory should be
// usable again.
func TestRunsShareTheirMemoryForLines(t *testing.T) {
	t.Parallel()
	spare := &Budget{total: 4 * ownLine}
	line := strings.Repeat("x", 2*ownLine) + "\n"
	a, b := newAssembler(spare), newAssembler(spare)
	in := newLineReader(strings.NewReader(line))
	for {
		p, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got, whole := a.Add(p); got != nil {
			if !whole || string(got) != line {
				t.Errorf("%d bytes, whole %t", len(got), whole)
			}
			break
		}
	}
	want := []string{line[:headBytes] + "…", "next\n"}
	if _, got := readLines(t, newLineReader(strings.NewReader(line+"next\n")), b); !cmp.Equal(got, want) {
		t.Errorf("%d lines while another run holds its own", len(got))
	}
	a.Release()
	if _, got := readLines(t, newLineReader(strings.NewReader(line)), b); len(got) != 1 || got[0] != line {
		t.Error("a line that comes when there is room is not whole")
	}
	if spare.used.Load() != 0 || cap(a.buf) > ownLine || cap(b.buf) > ownLine {
		t.Errorf("%d bytes are not given back, %d and %d are kept", spare.used.Load(), cap(a.buf), cap(b.buf))
	}
}

// The unread part of a tool's output should need no memory; everything else should be complete.
func TestLongStringsOfToolsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`\"\u00e9x`, 1<<20)
	format := `{"type":%q,"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"%s","is_error":true}]},"tool_use_result":"%s","session_id":"s"}` + "\n"
	long2 := strings.Repeat("y", 3<<20)
	for _, c := range []struct {
		kind  string
		spare int64
		whole bool
	}{{"user", 0, true}, {"assistant", 0, false}, {"assistant", MaxLines, true}} {
		in := fmt.Sprintf(format, c.kind, long, long2)
		_, got := readLines(t, newLineReader(strings.NewReader(in)), newAssembler(&Budget{total: c.spare}))
		if len(got) != 1 || strings.HasSuffix(got[0], "…") == c.whole {
			t.Fatalf("%s: %d lines, whole %t", c.kind, len(got), !c.whole)
		}
		if c.kind != "user" {
			continue
		}
		var l outputLine
		ok := l.decode([]byte(got[0]))
		if !ok || l.odd || l.SessionID != "s" || !l.Message.Content[0].IsError ||
			l.Message.Content[0].ToolUseID != "t1" {
			t.Errorf("decoded as %+v, %t", l, ok)
		}
		if text := string(l.Message.Content[0].Content); !strings.HasPrefix(text, `"éx"éx`) || len(text) < maxPreview {
			t.Errorf("its text is %.100q", text)
		}
		if len(got[0]) > 3*stringBytes {
			t.Errorf("%d bytes are left of it", len(got[0]))
		}
	}
}

// A run that waits for the CLI's next line should hold neither a read buffer nor memory for lines, also after a long
// line.
func TestWaitingNeedsNoBuffer(t *testing.T) {
	t.Parallel()
	var in *lineReader
	long, next := newAssembler(NewBudget(MaxLines)), strings.NewReader("")
	lengths := []int{1, 2 << 10, maxPiece, 3 * maxPiece, 2 * ownLine, 1}
	in = newLineReader(readerFunc(func(b []byte) (int, error) {
		if next.Len() == 0 && len(lengths) > 0 {
			if in.r != nil || len(b) > 1<<10 || cap(long.buf) > 0 || long.own != nil {
				t.Errorf("it waits with a buffer of %d bytes, and %d for a line", len(b), cap(long.buf))
			}
			next.Reset(strings.Repeat("x", lengths[0]) + "\n")
			lengths = lengths[1:]
		}
		return next.Read(b)
	}))
	if _, got := readLines(t, in, long); len(got) != 6 {
		t.Errorf("%d lines", len(got))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestReadErrorComesAfterTheText(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	in := newLineReader(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
	in.buffers = newReadBuffers(16)
	if p, err := in.Next(); string(p.text) != "half\n" || err != nil {
		t.Errorf("%q, %v", p.text, err)
	}
	if _, err := in.Next(); !errors.Is(err, broken) {
		t.Errorf("error = %v", err)
	}
}

// FuzzLines holds the lines against those that bytes.Lines finds, whatever the memory and however the text arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nbb\r\nlast"), []byte{1, 2}, uint8(20), uint8(40))
	f.Add([]byte("0123456789012345678901234567890123456789\nnext\n"), []byte{}, uint8(0), uint8(0))
	f.Add([]byte("0123456789012345\n0123456789012345678901234567890123456789"), []byte{16}, uint8(17), uint8(200))
	f.Add([]byte(`{"type":"user","x":"0123456789012345678901234567890123456789"}`), []byte{16}, uint8(40), uint8(0))
	f.Fuzz(func(t *testing.T, text, sizes []byte, most, total uint8) {
		const size = 16 // the least that bufio reads at once
		spare := &Budget{total: int64(total)}
		long := newAssembler(spare)
		long.most, long.cutter.limit = max(size, int(most)), 10
		in := newLineReader(&inSizes{text, sizes, 0})
		in.buffers = newReadBuffers(size)
		pieces, got := readLines(t, in, long)
		var all string
		var want []string
		for line := range bytes.Lines(text) {
			l := strings.TrimSuffix(string(line), "\n") + "\n"
			all += l
			want = append(want, l)
		}
		if pieces != all || len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, line := range want {
			head, lost := strings.CutSuffix(got[i], "…")
			short, cut := line, len(line) > long.most && bulky([]byte(line)[:long.most])
			if cut {
				short = shortened(line, 10)
			}
			switch {
			case lost && len(line) > long.most && (strings.HasPrefix(line, head) || strings.HasPrefix(short, head)):
			case !lost && got[i] == line && len(line) <= max(long.most, int(total)):
			case !lost && got[i] == short:
			case cut && !json.Valid([]byte(line)): // a line that is not JSON has no strings to cut, and is dropped
			default:
				t.Errorf("line %d of %d bytes became %q, want %q", i, len(line), got[i], line)
			}
		}
		if spare.used.Load() != 0 || cap(long.buf) > long.most {
			t.Errorf("%d bytes are not given back, %d are kept", spare.used.Load(), cap(long.buf))
		}
	})
}

var (
	jsonString    = regexp.MustCompile(`"(?:[^"\\]|\\u....|\\[^u])*"`)
	jsonCharacter = regexp.MustCompile(`^(?:\\u....|\\[^u]|[^\\])`)
)

// shortened is a JSON text with strings of limit bytes, and what is missing of a character.
func shortened(text string, limit int) string {
	return jsonString.ReplaceAllStringFunc(text, func(s string) string {
		n := 1
		for n <= limit && n < len(s)-1 {
			n += len(jsonCharacter.FindString(s[n:]))
		}
		return s[:n] + `"`
	})
}

func FuzzCutter(f *testing.F) {
	f.Add(`a "quoted" text with \ and é and `+"\x00\t\n😀", uint8(5), uint8(3))
	f.Fuzz(func(t *testing.T, s string, limit, size uint8) {
		text, err := json.Marshal(map[string]any{"a": s, s: []any{1, s, nil, ""}})
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.ToValidUTF8(string(text), ""))
		c := cutter{limit: int(limit)}
		var got []byte
		for p := text; len(p) > 0; {
			n := min(len(p), 1+int(size))
			got = c.Append(got, p[:n])
			p = p[n:]
		}
		if !json.Valid(got) {
			t.Errorf("%s became %s", text, got)
		}
		if want := shortened(string(text), int(limit)); isASCII(text) && string(got) != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		inPlace := append([]byte(nil), text...)
		c = cutter{limit: int(limit)}
		if again := c.Append(inPlace[:0], inPlace); !bytes.Equal(again, got) {
			t.Errorf("in place %s became %s", text, again)
		}
	})
}

func isASCII(b []byte) bool { return !bytes.ContainsFunc(b, func(r rune) bool { return r > 127 }) }

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
