// Package table prints the results of benchmarks: the machine, and the values beside their bars.
package table

import (
	"fmt"
	"io"
)

// Bars are limits and their measured values. The zero value is ready to use, by one goroutine at a time.
type Bars struct{ rows []bar }

type bar struct{ what, measured, promised, verdict string }

// Most adds a bar with an upper limit; format formats value and limit.
func (b *Bars) Most(what string, value, limit float64, format string) {
	b.add(what, value, limit, format, "<= ", value <= limit)
}

// Least adds a bar with a lower limit.
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

// Note adds a value without a limit.
func (b *Bars) Note(what string, value float64, format string) {
	b.rows = append(b.rows, bar{what: what, measured: fmt.Sprintf(format, value)})
}

// Write writes them in columns for a tabwriter, whose Flush returns the error.
func (b *Bars) Write(w io.Writer) {
	fmt.Fprintln(w, "promise\tmeasured\tbar\t")
	for _, r := range b.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.measured, r.promised, r.verdict)
	}
}
