package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report is what was measured.
type report struct {
	machine  string
	session  string
	readings []reading
	bars     []bar
}

// reading is what a contender needed, in the middle.
type reading struct {
	name string
	sample
	size int64 // of what was read
}

// bar is a promise and what became of it.
type bar struct{ what, measured, promised, verdict string }

// most adds a bar that is kept when the value is at most the limit; format writes both.
func (r *report) most(what string, value, limit float64, format string) {
	r.bar(what, value, limit, format, "<= ", value <= limit)
}

// least adds a bar that is kept when the value is at least the limit.
func (r *report) least(what string, value, limit float64, format string) {
	r.bar(what, value, limit, format, ">= ", value >= limit)
}

func (r *report) bar(what string, value, limit float64, format, sign string, kept bool) {
	verdict := "PASS"
	if !kept {
		verdict = "MISS"
	}
	r.bars = append(r.bars, bar{what, fmt.Sprintf(format, value), sign + fmt.Sprintf(format, limit), verdict})
}

// note adds a value that nothing was promised about.
func (r *report) note(what string, value float64, format string) {
	r.bars = append(r.bars, bar{what: what, measured: fmt.Sprintf(format, value)})
}

// print writes the table.
func (r *report) print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n%s\n\n", r.machine, r.session)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.readings) > 0 {
		fmt.Fprintln(w, "contender\twall\tspeed\tof the limit\tof the SDK\tCPU\tof the SDK\tpeak RSS")
		limit, sdk := r.reading(limitName), r.reading(sdkName)
		for _, c := range r.readings {
			fmt.Fprintf(w, "%s\t%.2f s\t%.0f MB/s\t%s\t%s\t%.2f s\t%s\t%.1f MB\n", c.name, c.Wall.Seconds(), c.speed(),
				ratio(c.speed(), limit.speed()), ratio(c.speed(), sdk.speed()), c.CPU.Seconds(), ratio(c.CPU.Seconds(), sdk.CPU.Seconds()), mega(c.RSS))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "promise\tmeasured\tbar\t")
	for _, b := range r.bars {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", b.what, b.measured, b.promised, b.verdict)
	}
	return w.Flush()
}

// reading finds a contender; one that was not measured has nothing but zeros.
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

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
