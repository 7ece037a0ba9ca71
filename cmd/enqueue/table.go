package main

import (
	"slices"
	"strings"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
)

// table is printed in columns. On a terminal that is narrow, columns are left out that matter less.
type table struct {
	columns []column
	spare   []string // names of columns that may be left out, in this order
	prose   bool     // the last column is words, of which the beginning will do; the first then has a line of its own where all else fails
}

// column is one of a table. The first of its cells is its name.
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

// add adds a row. Cells are made harmless here.
func (t *table) add(cells ...string) {
	for i, cell := range cells {
		c := &t.columns[i]
		cell = legible.Line(cell)
		c.cells, c.width = append(c.cells, cell), max(c.width, term.Cells(cell))
	}
}

// print prints it, each row in one line of the terminal as far as that is possible.
func (t *table) print(out *term.Out) {
	columns, alone := t.columns, false
	if width := out.Width(); width > 0 {
		var fits bool
		if columns, fits = t.fit(t.columns, width); !fits && t.prose {
			columns, _ = t.fit(t.columns[1:], width-2)
			columns, alone = append([]column{t.columns[0]}, columns...), true
		}
	}
	for row := range columns[0].cells {
		var line strings.Builder
		for i, c := range columns {
			cell, style := c.cells[row], term.Dim
			switch last := i == len(columns)-1; {
			case last && t.prose && out.TTY():
				cell = term.Cut(cell, c.width)
			case !last && (i > 0 || !alone):
				cell = term.Pad(cell, c.width)
			}
			if row > 0 {
				style = term.Plain
				if c.style != nil {
					style = c.style(row - 1)
				}
			}
			switch {
			case i == 1 && alone:
				line.WriteString("\n  ")
			case i > 0:
				line.WriteString("  ")
			}
			line.WriteString(out.Paint(style, cell))
		}
		say(out, "%s\n", strings.TrimRight(line.String(), " "))
	}
}

// enough is how much of the words should be left on a narrow terminal.
const enough = 20

// fit leaves out what has no room, and tells whether the rest has.
func (t *table) fit(all []column, width int) (columns []column, fits bool) {
	columns = slices.Clone(all)
	left := func() int { // for the last one
		n := width
		for _, c := range columns[:len(columns)-1] {
			n -= c.width + 2
		}
		return n
	}
	need := func() int {
		n := columns[len(columns)-1].width
		if t.prose {
			n = min(n, enough)
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
