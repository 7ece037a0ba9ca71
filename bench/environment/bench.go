package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/errand-fleet/errand/bench/table"
)

// options are the amounts to measure.
type options struct {
	Download     int64 // bytes of a file
	Dependencies int   // of a project
	Write        int64 // bytes that each of ten runs writes to its environment
	Readings     int
	Temp         string
	Only         *regexp.Regexp
	Quick        bool   // without the step projects
	Bin          string // the directory of worker
	Docs         string // the document with the examples
}

func amounts(quick bool) options {
	if quick {
		return options{Download: 16 << 20, Dependencies: 5, Write: 1 << 20, Readings: 1}
	}
	return options{Download: 2 << 30, Dependencies: 300, Write: 500 << 20, Readings: 5}
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("environment", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: small files")
	readings := flags.Int("n", 0, "how many times each contender is measured (default 5)")
	temp := flags.String("dir", "", "where files are written (default: the system's temporary directory)")
	bin := flags.String("bin", "../bin", "the directory of worker")
	docs := flags.String("docs", "../docs/repository.md", "the document with the examples for projects")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	if *readings > 0 {
		o.Readings = *readings
	}
	o.Temp, o.Only, o.Quick, o.Bin, o.Docs = *temp, only, *quick, *bin, *docs
	return o, nil
}

// bench is one complete measurement.
type bench struct {
	options
	dir    string // for all files; removed at the end
	report table.Report
}

// steps are the measurements, in order.
func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "egress", Do: b.egress}, {Name: "setup", Do: b.setup}, {Name: "projects", Do: b.projects},
	}
}

// measure runs all steps.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	b := &bench{options: o}
	if b.dir, err = os.MkdirTemp(o.Temp, "be-"); err != nil { // short, because it holds the path of a socket
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.report.About(ctx, "files of %d MB, %d dependencies; medians of %d readings", o.Download>>20, o.Dependencies,
		o.Readings)
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}
