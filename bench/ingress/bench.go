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
	Readings int           // of each contender
	Requests int           // of a reading; half as many more at half its rate
	Counted  int           // requests whose round trips are counted
	Storm    int           // runs that write while events come
	Burst    int           // events while Slack's API is in trouble
	Within   time.Duration // of the burst
	Troubles []trouble
	Starts   int // events whose CLI is waited for
	Bolt     bool
	Bin      string // the directory of enqueue and worker
	Root     string // the directory of package.json
	Only     *regexp.Regexp
}

func amounts(quick bool) options {
	if quick {
		return options{
			Readings: 1, Requests: 1000, Counted: 20, Storm: 20, Starts: 5, Burst: 100, Within: time.Second,
			Troubles: []trouble{{wait: 3 * time.Second}, {fails: true, lasts: 3 * time.Second}},
		}
	}
	return options{
		Readings: 5, Requests: 40_000, Counted: 200, Storm: 200, Starts: 200, Burst: 2000, Within: 10 * time.Second,
		Troubles: []trouble{
			{wait: 3 * time.Second, lasts: 30 * time.Second},
			{wait: 12 * time.Second, lasts: time.Minute},
			{wait: time.Minute, lasts: 3 * time.Minute},
			{fails: true, lasts: 10 * time.Minute},
			{wait: time.Hour, kills: true},
		},
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
	flags := flag.NewFlagSet("ingress", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: few requests")
	readings := flags.Int("n", 0, "how many times each contender is measured (default 5)")
	bolt := flags.Bool("bolt", true,
		"measure @slack/bolt with BullMQ, too; it needs node and what make bench-ingress installs")
	bin := flags.String("bin", "../bin", "the directory of enqueue and worker")
	root := flags.String("root", "ingress", "the directory of package.json")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	if *readings > 0 {
		o.Readings = *readings
	}
	o.Bolt, o.Bin, o.Root, o.Only = *bolt, *bin, *root, only
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
	b.report.About(ctx, "%d connections; medians of %d readings of %d events", door.Connections, o.Readings, o.Requests)
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}

func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "rate", Do: b.rate},
		{Name: "traces", Do: b.traces},
		{Name: "rounds", Do: b.rounds},
		{Name: "storm", Do: b.storm},
		{Name: "trouble", Do: b.trouble},
		{Name: "start", Do: b.start},
	}
}
