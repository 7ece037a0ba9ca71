package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/errand-fleet/errand/bench/table"
)

// report holds the results.
type report struct {
	machine string
	table.Bars
}

func (r *report) begin(ctx context.Context, o options) {
	r.machine = fmt.Sprintf("%s\nrepository of %d files and %d MB of history; medians of %d readings", table.Machine(ctx),
		o.Files, o.History, o.Readings)
}

// Print writes the table.
func (r *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n\n", r.machine)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	r.Write(w)
	return w.Flush()
}
