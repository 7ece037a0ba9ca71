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
	"runtime"
	"time"

	"github.com/errand-fleet/errand/bench/session"
	"github.com/errand-fleet/errand/bench/table"
)

// options are the amounts to measure.
type options struct {
	Size        int64 // of the session, in bytes
	Repetitions int   // of each contender
	Starts      int
	Keepers     int // started one after another
	Idle        int // runs that wait at the same time
	Crowd       int // runs that write at the same time
	Lines       int // written by each
	Loops       int // busy programs beside these before they write
	Beside      time.Duration
	LeaderKills int
	WorkerKills int
	Grace       time.Duration // of the runs whose worker is killed; 0: the default
	SDK         bool
	Root        string // the directory of package.json
	Temp        string // the parent of the directory for all files
	Keeper      string // the program errand-keeper; empty: this program is its own keeper
	Profile     string // file for a CPU profile of the runner; empty: no profile
	Only        *regexp.Regexp
}

// amounts returns the options of bench/README.md or, if quick, small ones that only check that everything works.
func amounts(quick bool) options {
	if quick {
		return options{
			Size: 5 << 20, Repetitions: 2, Starts: 5, Keepers: 3, Idle: 10, Crowd: 20, Lines: 100, Loops: 2, Beside: time.Second,
			LeaderKills: 2, WorkerKills: 1, Grace: 500 * time.Millisecond,
		}
	}
	return options{
		Size: 200 << 20, Repetitions: 5, Starts: 50, Keepers: 20, Idle: 100, Crowd: 200, Lines: 1000, Loops: 16,
		Beside: 3 * time.Minute, LeaderKills: 10, WorkerKills: 3,
	}
}

// bench is one complete measurement.
type bench struct {
	options
	self     string // this program
	dir      string // for all files; removed at the end
	session  string // the file
	size     int64  // of it
	lines    int64
	report   table.Report
	progress io.Writer
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: a session of 5 MB, few repetitions")
	repetitions := flags.Int("n", 0, "how many times each contender reads the session (default 5)")
	sdk := flags.Bool("sdk", true,
		"measure the official TypeScript SDK, too; it needs node and `npm ci` in the directory of package.json")
	root := flags.String("root", ".", "the directory of package.json")
	temp := flags.String("dir", "",
		"where logs are written; they need three times the session (default: the system's temporary directory)")
	keeper := flags.String("keeper", "",
		"the program errand-keeper, such as ../bin/errand-keeper (default: this program is its own keeper)")
	profile := flags.String("cpuprofile", "",
		"write a CPU profile of the runner reading the session, from a run that is not counted")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	if *repetitions > 0 {
		o.Repetitions = *repetitions
	}
	o.SDK, o.Root, o.Temp, o.Keeper, o.Profile, o.Only = *sdk, *root, *temp, *keeper, *profile, only
	return o, nil
}

// steps are the measurements, in order.
func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "stream", Do: b.stream},
		{Name: "profile", Do: b.profile},
		{Name: "keeper", Do: b.keeper},
		{Name: "start", Do: b.start},
		{Name: "idle", Do: b.idle},
		{Name: "crowd", Do: b.crowd},
		{Name: "leader", Do: b.killLeader},
		{Name: "worker", Do: b.killWorker},
	}
}

// measure runs all steps.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("what is measured is read from /proc: this needs Linux")
	}
	b := &bench{options: o, progress: progress}
	if b.self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if b.dir, err = os.MkdirTemp(o.Temp, "bench-"); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.session, b.lines, err = b.writeSession("session.ndjson", o.Size); err != nil {
		return nil, err
	}
	info, err := os.Stat(b.session)
	if err != nil {
		return nil, fmt.Errorf("look at session: %w", err)
	}
	b.size = info.Size()
	b.report.About(ctx, "session of %.0f MB in %d lines; medians of %d readings", mega(b.size), b.lines, b.Repetitions)
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}

// writeSession generates a session of the given size.
func (b *bench) writeSession(name string, size int64) (path string, lines int64, err error) {
	path = filepath.Join(b.dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", 0, fmt.Errorf("create session: %w", err)
	}
	lines, err = session.Write(f, size)
	return path, lines, errors.Join(err, f.Close())
}
