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

// options say how much is measured.
type options struct {
	Size        int64 // of the session, in bytes
	Repetitions int   // of each contender
	Starts      int
	Keepers     int // that are alone, one after another
	Idle        int // runs that wait at the same time
	Crowd       int // runs that write at the same time
	Lines       int // that each of them writes
	LeaderKills int
	WorkerKills int
	Grace       time.Duration // of the runs whose worker is killed; 0: a worker's own
	SDK         bool
	Root        string // the directory of package.json
	Temp        string // where a directory for everything that is written is made
	Worker      string // the program whose keepers are measured; empty: this one
	Profile     string // where a CPU profile of the runner goes; empty: none is made
	Only        *regexp.Regexp
}

// amounts are what bench/README.md records, or, quick, what only shows that everything works.
func amounts(quick bool) options {
	if quick {
		return options{
			Size: 5 << 20, Repetitions: 2, Starts: 5, Keepers: 3, Idle: 10, Crowd: 20, Lines: 100,
			LeaderKills: 2, WorkerKills: 1, Grace: 500 * time.Millisecond,
		}
	}
	return options{Size: 200 << 20, Repetitions: 5, Starts: 50, Keepers: 20, Idle: 100, Crowd: 200, Lines: 1000, LeaderKills: 10, WorkerKills: 3}
}

// bench is one measurement from start to end.
type bench struct {
	options
	self     string // this program
	dir      string // everything that is written is below it; it is removed at the end
	session  string // the file
	size     int64  // of it
	lines    int64
	report   report
	progress io.Writer

	keeperDelay time.Duration // by which a keeper of the worker starts later than one of this program
}

// run is the whole command; it returns the exit code. That a bar is missed is a result, and no failure.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	report, err := measure(ctx, o, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	if err := report.print(stdout); err != nil {
		fmt.Fprintln(stderr, "bench: print report:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: a session of 5 MB, few repetitions")
	repetitions := flags.Int("n", 0, "how many times each contender reads the session (default 5)")
	sdk := flags.Bool("sdk", true, "measure the official TypeScript SDK, too; it needs node and `npm ci` in the directory of package.json")
	root := flags.String("root", ".", "the directory of package.json")
	temp := flags.String("dir", "", "where logs are written; they need three times the session (default: the system's temporary directory)")
	worker := flags.String("worker", "", "the program whose keepers are measured, such as ../bin/worker (default: this one)")
	profile := flags.String("cpuprofile", "", "write a CPU profile of the runner reading the session, from a run that is not counted")
	only := flags.String("only", "", "a regular expression for the names of the steps to take: "+stepNames())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(stderr, "bench: -only:", err)
		return options{}, err
	}
	o := amounts(*quick)
	if *repetitions > 0 {
		o.Repetitions = *repetitions
	}
	o.SDK, o.Root, o.Temp, o.Worker, o.Profile, o.Only = *sdk, *root, *temp, *worker, *profile, pattern
	return o, nil
}

// steps are what is measured, in this order.
func steps() []step {
	return []step{
		{"stream", (*bench).stream},
		{"profile", (*bench).profile},
		{"keeper", (*bench).keeper},
		{"start", (*bench).start},
		{"idle", (*bench).idle},
		{"crowd", (*bench).crowd},
		{"leader", (*bench).killLeader},
		{"worker", (*bench).killWorker},
	}
}

type step struct {
	name string
	do   func(*bench, context.Context) error
}

func stepNames() (names string) {
	for _, s := range steps() {
		names += " " + s.name
	}
	return names
}

// measure takes all steps.
func measure(ctx context.Context, o options, progress io.Writer) (_ report, err error) {
	if runtime.GOOS != "linux" {
		return report{}, errors.New("what is measured is read from /proc: this needs Linux")
	}
	b := &bench{options: o, progress: progress}
	if b.self, err = os.Executable(); err != nil {
		return report{}, fmt.Errorf("find this program: %w", err)
	}
	if b.dir, err = os.MkdirTemp(o.Temp, "bench-"); err != nil {
		return report{}, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.session, b.lines, err = b.writeSession("session.ndjson", o.Size); err != nil {
		return report{}, err
	}
	info, err := os.Stat(b.session)
	if err != nil {
		return report{}, fmt.Errorf("look at session: %w", err)
	}
	b.size = info.Size()
	b.report.machine = table.Machine(ctx)
	b.report.session = fmt.Sprintf("session of %.0f MB in %d lines; medians of %d readings", mega(b.size), b.lines, b.Repetitions)
	for _, s := range steps() {
		if !o.Only.MatchString(s.name) {
			continue
		}
		fmt.Fprintln(progress, "==", s.name)
		if err := s.do(b, ctx); err != nil {
			return report{}, fmt.Errorf("measure %s: %w", s.name, err)
		}
	}
	return b.report, nil
}

// writeSession makes up a session of the given size.
func (b *bench) writeSession(name string, size int64) (path string, lines int64, err error) {
	path = filepath.Join(b.dir, name)
	f, err := os.Create(path)
	if err != nil {
		return "", 0, fmt.Errorf("create session: %w", err)
	}
	lines, err = session.Write(f, size)
	return path, lines, errors.Join(err, f.Close())
}
