// Package termtest provides terminals for tests: a real one in the kernel, and an emulator that shows what a person
// would see.
package termtest

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
)

// VT emulates the part of a terminal that a status line needs. Any other escape sequence fails the test. It is safe for
// concurrent use.
type VT struct {
	t       *testing.T
	columns int

	mu    sync.Mutex
	lines [][]rune
	col   int  // in the last line
	wrap  bool // the last column is written: the next character goes to the next line
}

// NewVT returns an empty terminal.
func NewVT(t *testing.T, columns int) *VT {
	return &VT{t: t, columns: columns, lines: make([][]rune, 1)}
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

// Write implements [io.Writer].
func (v *VT) Write(p []byte) (int, error) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for s := string(p); s != ""; {
		if m := sequence.FindStringSubmatch(s); m != nil {
			switch last := &v.lines[len(v.lines)-1]; {
			case m[2] == "J" && m[1] == "":
				*last = (*last)[:min(v.col, len(*last))]
			case m[2] != "m":
				v.t.Errorf("unexpected escape sequence %q", m[0])
			}
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch {
		case r == '\r':
			v.col, v.wrap = 0, false
		case r == '\n':
			v.newline()
		case r == '\t':
			v.col = min((v.col/8+1)*8, v.columns-1)
		case r < ' ':
			v.t.Errorf("unexpected control character %q", r)
		default:
			v.put(r)
		}
	}
	return len(p), nil
}

func (v *VT) newline() {
	v.lines = append(v.lines, nil)
	v.col, v.wrap = 0, false
}

func (v *VT) put(r rune) {
	n := term.Cells(string(r))
	if v.wrap || v.col+n > v.columns {
		v.newline()
	}
	last := &v.lines[len(v.lines)-1]
	for len(*last) < v.col+n {
		*last = append(*last, ' ')
	}
	if n == 0 {
		return
	}
	(*last)[v.col] = r
	if n == 2 {
		(*last)[v.col+1] = 0
	}
	if v.col += n; v.col >= v.columns {
		v.col, v.wrap = v.columns-1, true
	}
}

// Visible returns everything that was printed and not erased or overwritten, without trailing blanks and empty lines.
func (v *VT) Visible() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var b strings.Builder
	for _, line := range v.lines {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(line), "\x00", ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
