package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/workspace"
)

// options are the amounts to measure.
type options struct {
	Files    int // of the repository
	History  int // MB that its earlier commits have
	Readings int // of each contender, and of the next head
	Tasks    int // at once
	Temp     string
	Only     *regexp.Regexp
}

func amounts(quick bool) options {
	if quick {
		return options{Files: 2000, History: 2, Readings: 2, Tasks: 4}
	}
	return options{Files: 100_000, History: 2000, Readings: 5, Tasks: 20}
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("workspace", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: a small repository")
	readings := flags.Int("n", 0, "how many times each contender is measured (default 5)")
	history := flags.Int("history", 0, "how many MB of history the repository has (default 2000)")
	temp := flags.String("dir", "",
		"where repositories and clones are written; they need some 20 GB, and more with more history (default: the system's temporary directory)")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	if *readings > 0 {
		o.Readings = *readings
	}
	if *history > 0 {
		o.History = *history
	}
	o.Temp, o.Only = *temp, only
	return o, nil
}

// bench is one complete measurement.
type bench struct {
	options
	dir    string // for all files; removed at the end
	origin *origin
	space  *workspace.Workspace
	report table.Report
}

// steps are the measurements, in order.
func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "clone", Do: b.clone},
		{Name: "next", Do: b.next},
		{Name: "instructions", Do: b.instructions},
		{Name: "many", Do: b.many},
	}
}

// measure runs all steps.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp(o.Temp, "bench-"); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.report.About(ctx, "repository of %d files and %d MB of history; medians of %d readings", o.Files, o.History,
		o.Readings)
	fmt.Fprintln(progress, "== generate")
	if b.origin, err = newOrigin(ctx, filepath.Join(b.dir, "origin"), o.Files, o.History); err != nil {
		return nil, err
	}
	defer b.origin.close()
	b.space, err = workspace.New(workspace.Config{Dir: filepath.Join(b.dir, "workspace"), URL: b.origin.url})
	if err != nil {
		return nil, err
	}
	before := processors()
	took, err := timed(func() error {
		_, err := b.space.Checkout(ctx, workspace.Want{Thread: "next", Repo: repo})
		return err
	})
	if err != nil {
		return nil, err
	}
	b.report.Most("the first run of all: mirror and clone", took.Seconds(), 60, "%.1f s")
	b.report.Note("processor time of that, with the server's", (processors() - before).Seconds(), "%.1f s")
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}

// processors returns the processor time of this process and of those that it has waited for.
func processors() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return sum
}
