package main

import (
	"slices"
	"strings"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
)

// table is a table that fits the terminal: on a narrow one it leaves out less important columns.
type table struct {
	columns []column
	spare   []string // names of columns that may be left out, the first one first
	prose   bool     // the last column may be cut; if that is not enough, the first column moves to a separate line
}

// column is a column of a table. Its first cell is its name.
type column struct {
	cells []string
	width int
	style func(row int) term.Style // nil: plain; rows count from 0
}

func newTable(names ...string) *table {
	t := &table{columns: make([]column, len(names))}
	t.add(names...)
	return t
}

// add adds a row and sanitizes its cells.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		c := &t.columns[i]
		cell = legible.Line(cell)
		c.cells, c.width = append(c.cells, cell), max(c.width, term.Cells(cell))
	}
}

// print prints the table, if possible with one terminal line per row.
func (t *table) print(out *term.Out) {
	columns, split := t.columns, false
	if width := out.Width(); width > 0 {
		var fits bool
		if columns, fits = t.fit(t.columns, width); !fits && t.prose {
			columns, _ = t.fit(t.columns[1:], width-2)
			columns, split = append([]column{t.columns[0]}, columns...), true
		}
	}
	for row := range columns[0].cells {
		var line strings.Builder
		for i, c := range columns {
			cell, style := c.cells[row], term.Dim
			switch last := i == len(columns)-1; {
			case last && t.prose && out.TTY():
				cell = term.Cut(cell, c.width)
			case !last && (i > 0 || !split):
				cell = term.Pad(cell, c.width)
			}
			if row > 0 {
				style = term.Plain
				if c.style != nil {
					style = c.style(row - 1)
				}
			}
			switch {
			case i == 1 && split:
				line.WriteString("\n  ")
			case i > 0:
				line.WriteString("  ")
			}
			line.WriteString(out.Paint(style, cell))
		}
		printf(out, "%s\n", strings.TrimRight(line.String(), " "))
	}
}

// minProse is the minimum width of the last column.
const minProse = 20

// fit leaves out columns until the rest fits, and reports whether it does.
func (t *table) fit(all []column, width int) (columns []column, fits bool) {
	columns = slices.Clone(all)
	left := func() int { // width for the last column
		n := width
		for _, c := range columns[:len(columns)-1] {
			n -= c.width + 2
		}
		return n
	}
	need := func() int {
		n := columns[len(columns)-1].width
		if t.prose {
			n = min(n, minProse)
		}
		return n
	}
	for _, name := range t.spare {
		if left() >= need() {
			break
		}
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.cells[0] == name })
	}
	fits = left() >= need()
	if last := &columns[len(columns)-1]; t.prose {
		last.width = max(1, min(last.width, left()))
	}
	return columns, fits
}
