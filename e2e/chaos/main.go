package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/fake/container"
)

func main() {
	if len(os.Args) > 5 && os.Args[1] == container.Argument {
		fmt.Fprintln(os.Stderr, "chaos:", container.Enter(os.Args[2:]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the command line's settings.
type settings struct {
	seed     uint64
	tasks    int
	faults   int
	span     time.Duration // of traffic and faults
	workers  int
	pools    int    // of workers
	sentinel bool   // Redis fails over
	replicas int    // that have to confirm writes
	bin      string // directory of worker and enqueue
	other    string // directory of another version of them; may be empty
	cli      string // the scripted CLI
	leaks    bool   // many short tasks and no faults
	drill    bool   // of takeovers from busy workers
	waiting  int    // tasks behind a limit in the drill
	once     bool   // workers take one task each, in containers that start again
	s3       string // an S3 server for large values; empty: none
}

// The default numbers of requests and faults, which keep two cores busy.
const (
	tasksPerSecond = 1.7
	faultsPerTask  = 0.34
	least          = 20 * time.Second // of traffic and faults
)

// The default numbers with -once, where each task also starts a worker.
const (
	onceWorkers        = 10
	onceTasks          = 200
	onceTasksPerSecond = 1.2
)

// run is the whole command; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return 2
	}
	if !set.leaks && !set.drill {
		fmt.Fprintf(stdout, "chaos: seed %d, %d tasks and %d faults within %s, %d workers, pools: %d\n",
			set.seed, set.tasks, set.faults, set.span.Round(time.Second), set.workers, set.pools)
	}
	do := rampage
	if set.leaks {
		do = findLeaks
	}
	if set.drill {
		do = drillTakeovers
	}
	ok, err := do(ctx, set, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
		return 1
	}
	if !ok {
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Uint64Var(&s.seed, "seed", 0, "what the plan is made from (default: a random one, which is printed)")
	flags.IntVar(&s.tasks, "tasks", 0, "number of requests (default: as many as fit; 1000 without -for)")
	flags.IntVar(&s.faults, "faults", 0, "how much is broken (default: about one for three tasks)")
	flags.IntVar(&s.workers, "workers", 0,
		"how many workers there are; at least 2 in each pool (default: 3, or 2 in each of several pools)")
	flags.IntVar(&s.pools, "pools", 1, "how many pools the workers and repositories have")
	flags.BoolVar(&s.sentinel, "sentinel", false, "let Redis fail over: a master, a replica and three Sentinels")
	flags.IntVar(&s.replicas, "replicas", 0, "ERRAND_REDIS_REPLICAS, 1 at most")
	flags.StringVar(&s.bin, "bin", "bin", "directory of the programs worker and enqueue")
	flags.StringVar(&s.other, "other", "",
		"directory of another version, with which the programs alternate at each start")
	flags.StringVar(&s.s3, "s3", "", "versitygw, an S3 server, for large values (default: they are in Redis)")
	flags.StringVar(&s.cli, "cli", "bin/chaos/cli", "the scripted CLI")
	flags.BoolVar(&s.leaks, "leaks", false, "look for leaks in a thousand short tasks without faults")
	flags.BoolVar(&s.drill, "takeovers", false, "kill workers that are busy with long runs, and nothing else")
	flags.IntVar(&s.waiting, "waiting", 0, "with -takeovers: how many tasks wait behind a limit meanwhile")
	flags.BoolVar(&s.once, "once", false,
		"ten workers that take one task each, in containers that start again")
	all := flags.Duration("for", 0, "about how long all of it takes (default: as long as the tasks need)")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	rate := tasksPerSecond
	if s.once {
		s.workers, rate = cmp.Or(s.workers, onceWorkers), onceTasksPerSecond
		if s.tasks == 0 && *all == 0 {
			s.tasks = onceTasks
		}
	}
	if s.workers == 0 {
		s.workers = max(3, 2*s.pools)
	}
	if flags.NArg() > 0 || s.tasks < 0 || s.faults < 0 || s.pools < 1 || s.workers < 2*s.pools || *all < 0 ||
		s.replicas < 0 || s.replicas > 1 || s.waiting < 0 || s.waiting > 0 && !s.drill || s.once && (s.leaks || s.drill) {
		return s, errors.New("a number is out of range, there are arguments that are no flags, or -once has another mode beside it")
	}
	if s.seed == 0 {
		s.seed = rand.Uint64()>>40 + 1 //nolint:gosec // not a secret
	}
	s.span = *all * 55 / 100 // the rest is for takeovers, retries and the stop
	switch {
	case s.tasks == 0 && s.span == 0:
		s.tasks = 1000
	case s.tasks == 0:
		s.tasks = int(s.span.Seconds() * rate)
	}
	if s.span == 0 {
		s.span = time.Duration(float64(s.tasks) / rate * float64(time.Second))
	}
	s.span = max(s.span, least)
	if s.faults == 0 {
		s.faults = int(float64(s.tasks) * faultsPerTask)
	}
	return s, nil
}
