// Package table writes down what was measured: on which machine, and how that compares with what was promised.
package table

import (
	"fmt"
	"io"
)

// Bars are promises and what became of them. The zero value is ready to use, by one goroutine at a time.
type Bars struct{ rows []bar }

type bar struct{ what, measured, promised, verdict string }

// Most adds a bar that is kept when the value is at most the limit; format writes both.
func (b *Bars) Most(what string, value, limit float64, format string) {
	b.add(what, value, limit, format, "<= ", value <= limit)
}

// Least adds a bar that is kept when the value is at least the limit.
func (b *Bars) Least(what string, value, limit float64, format string) {
	b.add(what, value, limit, format, ">= ", value >= limit)
}

func (b *Bars) add(what string, value, limit float64, format, sign string, kept bool) {
	verdict := "PASS"
	if !kept {
		verdict = "MISS"
	}
	b.rows = append(b.rows, bar{what, fmt.Sprintf(format, value), sign + fmt.Sprintf(format, limit), verdict})
}

// Note adds a value that nothing was promised about.
func (b *Bars) Note(what string, value float64, format string) {
	b.rows = append(b.rows, bar{what: what, measured: fmt.Sprintf(format, value)})
}

// Write writes them in columns for a tabwriter. Its Flush tells what went wrong.
func (b *Bars) Write(w io.Writer) {
	fmt.Fprintln(w, "promise\tmeasured\tbar\t")
	for _, r := range b.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.measured, r.promised, r.verdict)
	}
}
