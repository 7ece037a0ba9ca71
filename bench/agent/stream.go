package main

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/bench/table"
)

// sample is the cost of reading the session once.
type sample struct {
	Wall  time.Duration `json:"wall"`
	CPU   time.Duration `json:"cpu"` // of the reading processes, without the fake CLI
	RSS   int64         `json:"rss"` // their peak, in bytes
	Lines int64         `json:"lines"`
}

// The contenders.
const (
	limitName = "cat > file"
	ownName   = "errand"
	sdkName   = "TypeScript SDK"
)

// contender reads the session from the fake CLI.
type contender struct {
	name string
	read func(context.Context) (sample, error)
}

// stream lets all contenders read the session.
func (b *bench) stream(ctx context.Context) error {
	contenders := []contender{{limitName, b.cat}, {ownName, b.errand}}
	if b.SDK {
		if err := b.sdkInstalled(); err != nil {
			return err
		}
		contenders = append(contenders, contender{sdkName, b.sdk})
	}
	medians, err := b.compare(ctx, contenders)
	if err != nil {
		return err
	}
	b.sideBySide(contenders, medians)
	own := medians[1]
	if b.SDK {
		sdk := medians[2]
		b.report.Least("speed, as a multiple of the SDK's", sdk.Wall.Seconds()/own.Wall.Seconds(), 1.2, "%.2f")
		b.report.Most("CPU time, as a multiple of the SDK's", own.CPU.Seconds()/sdk.CPU.Seconds(), 0.8, "%.2f")
	}
	b.report.Most("peak RSS of worker and keeper", mega(own.RSS), 64, "%.1f MB")
	return nil
}

// sideBySide adds the table of the contenders, of which the first is the limit.
func (b *bench) sideBySide(contenders []contender, medians []sample) {
	limit, sdk := medians[0], sample{}
	if b.SDK {
		sdk = medians[2]
	}
	b.report.Compare("contender", "wall", "speed", "of the limit", "of the SDK", "CPU", "of the SDK", "peak RSS")
	for i, c := range contenders {
		wall, cpu := medians[i].Wall.Seconds(), medians[i].CPU.Seconds()
		b.report.Compare(c.name, fmt.Sprintf("%.2f s", wall), fmt.Sprintf("%.0f MB/s", mega(b.size)/wall),
			table.Ratio(limit.Wall.Seconds(), wall), table.Ratio(sdk.Wall.Seconds(), wall),
			fmt.Sprintf("%.2f s", cpu), table.Ratio(cpu, sdk.CPU.Seconds()), fmt.Sprintf("%.1f MB", mega(medians[i].RSS)))
	}
}

// compare measures the contenders in turns, so that other load affects them equally, and returns their medians.
func (b *bench) compare(ctx context.Context, contenders []contender) ([]sample, error) {
	samples := make([][]sample, len(contenders))
	for i := range b.Repetitions {
		for j, c := range contenders {
			s, err := c.read(ctx)
			if err != nil {
				return nil, fmt.Errorf("let %s read: %w", c.name, err)
			}
			if s.Lines != b.lines {
				return nil, fmt.Errorf("let %s read: it saw %d of %d lines", c.name, s.Lines, b.lines)
			}
			samples[j] = append(samples[j], s)
			fmt.Fprintf(b.progress, "%d/%d  %-14s  %.2f s wall  %.2f s CPU  %.1f MB\n",
				i+1, b.Repetitions, c.name, s.Wall.Seconds(), s.CPU.Seconds(), mega(s.RSS))
		}
	}
	medians := make([]sample, len(contenders))
	for j := range contenders {
		medians[j] = middle(samples[j])
	}
	return medians, nil
}

// mega counts bytes in MB, of 2^20 bytes as the kernel counts them.
func mega(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// middle returns the median of each value separately.
func middle(samples []sample) sample {
	return sample{
		Wall: table.MedianOf(samples, func(s sample) time.Duration { return s.Wall }),
		CPU:  table.MedianOf(samples, func(s sample) time.Duration { return s.CPU }),
		RSS:  table.MedianOf(samples, func(s sample) int64 { return s.RSS }),
	}
}
