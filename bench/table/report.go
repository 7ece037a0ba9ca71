// Package table prints the results of benchmarks: the machine, the contenders side by side, and the values beside their
// bars.
package table

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is the result of a benchmark. The zero value is ready to use, by one goroutine at a time.
type Report struct {
	about      string
	contenders []string // rows, the first of which has the heads of the columns
	bars       []string // rows
}

// About says on which machine and with which amounts the benchmark measures.
func (r *Report) About(ctx context.Context, format string, amounts ...any) {
	r.about = Machine(ctx) + "\n" + fmt.Sprintf(format, amounts...)
}

// Compare adds a row to the table of contenders. The first one has the heads of the columns.
func (r *Report) Compare(cells ...string) {
	r.contenders = append(r.contenders, strings.Join(cells, "\t"))
}

// Most adds a value with an upper limit; format formats value and limit.
func (r *Report) Most(what string, value, limit float64, format string) {
	r.add(what, value, format, "<= "+fmt.Sprintf(format, limit), verdict(value <= limit))
}

// Least adds a value with a lower limit.
func (r *Report) Least(what string, value, limit float64, format string) {
	r.add(what, value, format, ">= "+fmt.Sprintf(format, limit), verdict(value >= limit))
}

// Note adds a value without a limit.
func (r *Report) Note(what string, value float64, format string) { r.add(what, value, format, "", "") }

func (r *Report) add(what string, value float64, format, limit, verdict string) {
	r.bars = append(r.bars, strings.Join([]string{what, fmt.Sprintf(format, value), limit, verdict}, "\t"))
}

func verdict(kept bool) string {
	if kept {
		return "PASS"
	}
	return "MISS"
}

// Print writes the report.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n\n", r.about)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.contenders) > 0 {
		fmt.Fprintf(w, "%s\n\n", strings.Join(r.contenders, "\n"))
	}
	fmt.Fprintf(w, "promise\tmeasured\tbar\t\n%s\n", strings.Join(r.bars, "\n"))
	return w.Flush()
}

// Ratio formats a value as a multiple of another one, which is 0 if it was not measured.
func Ratio(value, to float64) string {
	if to == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", value/to)
}
