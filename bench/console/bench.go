package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
)

// options are the amounts to measure, and the programs.
type options struct {
	Pages    int           // open at once
	Runs     int           // that they watch
	Time     time.Duration // in which the runs write
	Rounds   int           // with and without pages, of the way in
	Requests int           // of each of these
	History  int           // events of a run before its pages are opened
	Tasks    int           // in the list
	Asked    int           // requests for each list
	Bin      string        // the directory of enqueue
	Only     *regexp.Regexp
}

func amounts(quick bool) options {
	if quick {
		return options{
			Pages: 20, Runs: 5, Time: time.Second, Rounds: 1, Requests: 500, History: 500, Tasks: 2000, Asked: 5,
		}
	}
	return options{
		Pages: 200, Runs: 50, Time: 30 * time.Second, Rounds: 5, Requests: 10_000, History: 5000,
		Tasks: 100_000, Asked: 200,
	}
}

// bench is one complete measurement.
type bench struct {
	options
	self     string // this program
	dir      string // for all files; removed at the end
	redisURL string
	redis    *redis.Client
	slack    *door.Slack
	report   table.Report
	progress io.Writer
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("console", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: few pages and tasks")
	bin := flags.String("bin", "../bin", "the directory of enqueue")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	o.Bin, o.Only = *bin, only
	return o, nil
}

// measure runs all steps on a separate Redis with an append-only file, as in a fleet.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	b := &bench{options: o, progress: progress, slack: door.NewSlack()}
	defer b.slack.Close()
	if b.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	r, err := door.StartRedis(ctx, b.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Stop(ctx)) }()
	b.redis, b.redisURL = r.Client, r.URL
	b.report.About(ctx, "%d pages that watch %d runs; %d tasks in the list", o.Pages, o.Runs, o.Tasks)
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}

func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "pages", Do: b.pages},
		{Name: "enqueue", Do: b.enqueue},
		{Name: "history", Do: b.history},
		{Name: "list", Do: b.list},
	}
}
