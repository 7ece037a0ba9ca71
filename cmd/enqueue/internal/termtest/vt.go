// Package termtest is a terminal for tests: a real one in the kernel, and what a person would see on it.
package termtest

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
)

// VT is a terminal as far as a status line needs one: what stands in it is what a person sees. Anything that a program sends besides is an
// error of the test. It may be used from any goroutine.
type VT struct {
	t             *testing.T
	columns, rows int

	mu        sync.Mutex
	cells     [][]rune
	row, col  int
	wrap      bool // the last column was written: the next character goes to the next line
	saved     [2]int
	savedWrap bool
	gone      []string // lines that have left at the top
}

// NewVT is an empty one.
func NewVT(t *testing.T, columns, rows int) *VT {
	t.Helper()
	v := &VT{t: t, columns: columns, rows: rows}
	for range rows {
		v.cells = append(v.cells, v.blank())
	}
	return v
}

func (v *VT) blank() []rune { return []rune(strings.Repeat(" ", v.columns)) }

var order = regexp.MustCompile(`^\x1b(?:\[([0-9;]*)([A-Za-z])|[78DM])`)

// Resize gives it another number of rows, as terminals do it: what is above leaves, text and cursor stay together, and nobody moves the
// place that was remembered.
func (v *VT) Resize(rows int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for len(v.cells) > rows {
		v.gone = append(v.gone, v.line(0))
		v.cells, v.row = v.cells[1:], v.row-1
	}
	v.rows = rows
}

// Write plays what a program sends; the driver of a real terminal makes \r\n of its \n.
func (v *VT) Write(p []byte) (int, error) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for s := string(p); s != ""; {
		if m := order.FindStringSubmatch(s); m != nil {
			v.obey(m[0], m[1])
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch {
		case r == '\r':
			v.col, v.wrap = 0, false
		case r == '\n':
			v.down()
			v.col, v.wrap = 0, false
		case r == '\t':
			v.col = min((v.col/8+1)*8, v.columns-1)
		case r < ' ':
			v.t.Errorf("it is sent %q", r)
		default:
			v.put(r)
		}
	}
	return len(p), nil
}

func (v *VT) put(r rune) {
	n := term.Cells(string(r))
	if v.wrap || v.col+n > v.columns {
		v.down()
		v.col, v.wrap = 0, false
	}
	if n == 0 {
		return
	}
	v.cells[v.row][v.col] = r
	if n == 2 {
		v.cells[v.row][v.col+1] = 0
	}
	if v.col += n; v.col >= v.columns {
		v.col, v.wrap = v.columns-1, true
	}
}

func (v *VT) down() {
	if v.row < v.rows-1 {
		v.row++
		return
	}
	v.gone = append(v.gone, v.line(0))
	v.cells = append(v.cells[1:], v.blank())
}

func (v *VT) obey(all, args string) {
	v.t.Helper()
	n, _ := strconv.Atoi(args)
	switch all[1:] {
	case "7":
		v.saved, v.savedWrap = [2]int{v.row, v.col}, v.wrap
		return
	case "8":
		v.row, v.col, v.wrap = v.saved[0], v.saved[1], v.savedWrap
		return
	case "D":
		v.down()
		v.wrap = false
		return
	case "M":
		v.row, v.wrap = v.row-1, false
		return
	}
	switch all[len(all)-1] {
	case 'm':
	case 'B':
		v.row, v.wrap = min(v.row+max(n, 1), v.rows-1), false
	case 'J':
		v.cells[v.row] = append(v.cells[v.row][:v.col:v.col], v.blank()[v.col:]...)
		for i := v.row + 1; i < v.rows; i++ {
			v.cells[i] = v.blank()
		}
	default:
		v.t.Errorf("it is sent %q", all)
	}
}

func (v *VT) line(i int) string {
	return strings.TrimRight(strings.ReplaceAll(string(v.cells[i]), "\x00", ""), " ")
}

// Seen is all that was ever printed and is not covered by something else, without the empty lines at the end.
func (v *VT) Seen() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	lines := append([]string{}, v.gone...)
	for i := range v.rows {
		lines = append(lines, v.line(i))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
