package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// report holds the results.
type report struct {
	machine  string
	readings []named
	table.Bars
}

type named struct {
	name string
	reading
}

func (r *report) begin(ctx context.Context, o options) {
	r.machine = fmt.Sprintf("%s\n%d connections; medians of %d readings of %d events", table.Machine(ctx),
		door.Connections, o.Readings, o.Requests)
}

// compare compares errand with the others.
func (r *report) compare() {
	own, limit, bolt := r.of(ownName), r.of(bareName), r.of(boltName)
	r.Least("answers a second, as a multiple of a bare handler's", own.answers/limit.answers, 0.80, "%.2f")
	if bolt.rate > 0 {
		r.Least("the same of Bolt's", own.answers/bolt.answers, 2.5, "%.2f")
		r.Most("CPU for an answer, as a multiple of Bolt's", float64(own.answer)/float64(bolt.answer), 0.35, "%.2f")
	}
	r.Least("the rate while events are interpreted, as a multiple of a bare handler's", own.rate/limit.rate, 0.60, "%.2f")
	r.Most("p99 of the answer at half the rate", milliseconds(own.half), 15, "%.1f ms")
	r.Least("events a second until they are tasks, as a multiple of a bare handler's", own.tasks/limit.tasks, 0.45, "%.2f")
}

// of returns the result of a contender, or zeros if it was not measured.
func (r *report) of(name string) reading {
	for _, n := range r.readings {
		if n.name == name {
			return n.reading
		}
	}
	return reading{}
}

// Print writes the table.
func (r *report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%s\n\n", r.machine)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.readings) > 0 {
		fmt.Fprintln(w,
			"contender\tevents/s\tof bare\tof Bolt\tCPU for one\tof Bolt\tof Redis\tp50 at half\tp99 at half")
		limit, bolt := r.of(bareName), r.of(boltName)
		for _, n := range r.readings {
			fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%.0f µs\t%s\t%.0f µs\t%.1f ms\t%.1f ms\n", n.name, n.rate,
				ratio(n.rate, limit.rate), ratio(n.rate, bolt.rate),
				micros(n.cpu), ratio(float64(n.cpu), float64(bolt.cpu)), micros(n.redis), milliseconds(n.p50),
				milliseconds(n.half))
		}
		fmt.Fprintln(w)
	}
	r.Write(w)
	return w.Flush()
}

func ratio(value, to float64) string {
	if to == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", value/to)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
