package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/errand-fleet/errand/bench/table"
)

// report holds the results.
type report struct {
	machine  string
	session  string
	readings []reading
	table.Bars
}

// reading is a contender's median.
type reading struct {
	name string
	sample
	size int64 // of the session
}

// Print writes the table.
func (r *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s\n\n", r.machine, r.session)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.readings) > 0 {
		fmt.Fprintln(w, "contender\twall\tspeed\tof the limit\tof the SDK\tCPU\tof the SDK\tpeak RSS")
		limit, sdk := r.reading(limitName), r.reading(sdkName)
		for _, c := range r.readings {
			fmt.Fprintf(w, "%s\t%.2f s\t%.0f MB/s\t%s\t%s\t%.2f s\t%s\t%.1f MB\n", c.name, c.Wall.Seconds(), c.speed(),
				ratio(c.speed(), limit.speed()), ratio(c.speed(), sdk.speed()), c.CPU.Seconds(),
				ratio(c.CPU.Seconds(), sdk.CPU.Seconds()), mega(c.RSS))
		}
		fmt.Fprintln(w)
	}
	r.Write(w)
	return w.Flush()
}

// reading returns the result of a contender, or zeros if it was not measured.
func (r *report) reading(name string) reading {
	for _, c := range r.readings {
		if c.name == name {
			return c
		}
	}
	return reading{}
}

// speed is in MB/s.
func (c reading) speed() float64 {
	if c.Wall == 0 {
		return 0
	}
	return mega(c.size) / c.Wall.Seconds()
}

func ratio(value, to float64) string {
	if to == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", value/to)
}

// mega counts bytes in MB, of 2^20 bytes as the kernel counts them.
func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }
