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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// options are the amounts to measure, and where the worker is.
type options struct {
	Workers int
	Runs    int           // silent runs
	Picked  int           // tasks whose start is timed
	Starts  int           // of each kind of worker
	Waiting int           // tasks behind a limit
	Kept    int           // tasks whose memory is measured
	Look    time.Duration // how long each state is observed
	Bin     string
	Only    *regexp.Regexp
}

func amounts(quick bool) options {
	if quick {
		return options{Workers: 2, Runs: 4, Picked: 4, Starts: 1, Waiting: 50, Kept: 50, Look: time.Second}
	}
	return options{Workers: 60, Runs: 500, Picked: 200, Starts: 20, Waiting: 5000, Kept: 1000, Look: 20 * time.Second}
}

// bench is one complete measurement.
type bench struct {
	options
	dir      string
	redis    *door.Redis
	desk     *desk.Desk
	store    *store.Store
	progress io.Writer
	report   table.Report
}

func parse(args []string, stderr io.Writer) (options, error) {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "a smoke run: two workers")
	workers := flags.Int("workers", 0, "the number of workers (default 60)")
	runs := flags.Int("runs", 0, "the number of silent runs (default 500)")
	bin := flags.String("bin", "../bin", "the directory of worker")
	only := table.Only(flags, new(bench).steps())
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := amounts(*quick)
	if *workers > 0 {
		o.Workers = *workers
	}
	if *runs > 0 {
		o.Runs = *runs
	}
	o.Bin, o.Only = *bin, only
	return o, nil
}

// measure runs all steps, each on a separate Redis and fleet.
func measure(ctx context.Context, o options, progress io.Writer) (_ *table.Report, err error) {
	b := &bench{options: o, progress: progress}
	if b.dir, err = os.MkdirTemp("", "b"); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if err := os.Symlink(self, filepath.Join(b.dir, fakecli.Name)); err != nil {
		return nil, fmt.Errorf("name the CLI: %w", err)
	}
	b.report.About(ctx, "%d workers, %d silent runs, %d waiting tasks; each state observed for %v", o.Workers, o.Runs,
		o.Waiting, o.Look)
	err = table.Take(ctx, progress, o.Only, b.steps())
	return &b.report, err
}

func (b *bench) steps() []table.Step {
	return []table.Step{
		{Name: "idle", Do: b.with("", b.idle)},
		{Name: "start", Do: b.with("", b.start)},
		{Name: "once", Do: b.alone(b.once)},
		{Name: "silent", Do: b.with("", b.silent)},
		{Name: "talking", Do: b.with("", b.talking)},
		{Name: "waiting", Do: b.with("limits:\n  user: 1\n", b.waiting)},
		{Name: "line", Do: b.with("limits:\n  user: 1\n", b.line)},
		{Name: "kept", Do: b.alone(b.kept)},
	}
}

// with runs a step on an empty Redis with a fleet that has the given settings in its errand.yaml.
func (b *bench) with(settings string, step func(context.Context) error) func(context.Context) error {
	return b.alone(func(ctx context.Context, dir string) (err error) {
		file := filepath.Join(dir, "errand.yaml")
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
		workers, err := b.hire(ctx, dir, file)
		defer func() { err = errors.Join(err, dismiss(workers)) }()
		if err != nil {
			return err
		}
		return step(ctx)
	})
}

// alone runs a step on an empty Redis, without a fleet, with an empty directory.
func (b *bench) alone(step func(ctx context.Context, dir string) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		dir, err := os.MkdirTemp(b.dir, "s")
		if err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if b.redis, err = door.StartRedis(ctx, dir); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.redis.Stop(ctx)) }()
		if b.store, err = store.New(store.Config{Redis: b.redis.Client}); err != nil {
			return err
		}
		b.desk = desk.New(b.store, queue.New(b.store, b.redis.Client, time.Hour), rights.Policy{}, nil)
		return step(ctx, dir)
	}
}

// hire starts the workers, and returns when all of them can run tasks.
func (b *bench) hire(ctx context.Context, dir, settings string) ([]*door.Server, error) {
	var workers []*door.Server
	for i := range b.Workers {
		home := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(home, 0o700); err != nil {
			return workers, fmt.Errorf("create directory: %w", err)
		}
		p := b.worker(home)
		p.Env = append(p.Env, "ERRAND_CONFIG="+settings, "ERRAND_CONCURRENCY=10")
		s, err := p.Launch(ctx)
		if err != nil {
			return workers, err
		}
		workers = append(workers, s)
	}
	return workers, b.until(ctx, "all workers can run tasks", func() (bool, error) {
		alive, err := b.store.Workers.List(ctx)
		able := slices.DeleteFunc(alive, func(w store.Worker) bool { return len(w.Health) == 0 || !capacity.Able(w) })
		return len(able) == b.Workers, err
	})
}

// worker is a worker with its state in home.
func (b *bench) worker(home string) door.Program {
	return door.Program{
		Name: "worker", Args: []string{filepath.Join(b.Bin, "worker")}, Dir: home, Redis: b.redis.URL,
		Env: []string{
			"ERRAND_STATE_DIR=" + home, "ERRAND_CLAUDE=" + filepath.Join(b.dir, fakecli.Name), "ERRAND_SANDBOX=none",
			"ERRAND_ALLOW_ROOT=true", "ERRAND_WORKER_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN=" + door.Token,
			"ANTHROPIC_API_KEY=sk-ant-bench-key", "ANTHROPIC_BASE_URL=http://127.0.0.1:9",
		},
	}
}

func dismiss(workers []*door.Server) error {
	var all sync.WaitGroup
	errs := make([]error, len(workers))
	for i, w := range workers {
		all.Go(func() { errs[i] = w.Stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// until polls until a condition holds.
func (b *bench) until(ctx context.Context, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, fmt.Errorf("wait until %s: it took too long", what))
	defer cancel()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		if !door.Until(ctx, time.Now().Add(100*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
}

// submit submits n tasks whose prompt is an order to the fake CLI.
func (b *bench) submit(ctx context.Context, name, order string, n int) ([]string, error) {
	var ids []string
	for i := range n {
		r, err := b.desk.Submit(ctx, task(fmt.Sprint(name, i), order))
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, nil
}

func task(name, order string) tasks.Task {
	return tasks.Task{
		ID: tasks.NewID(time.Now(), "chat", name), Source: "chat", Kind: "prompt", Thread: "chat/" + name,
		Class: tasks.Interactive, Profile: agent.Read, Actor: "ann", Prompt: order,
	}
}

// observed is what Redis did while a state was observed.
type observed struct {
	commands    float64 // a second
	cpu         float64 // share of a core
	connections int
	calls       map[string]int64 // by command
}

// observe lets the fleet settle and then observes Redis.
func (b *bench) observe(ctx context.Context) (observed, error) {
	if !door.Until(ctx, time.Now().Add(b.Look/4)) {
		return observed{}, context.Cause(ctx)
	}
	before, err := b.redis.Usage(ctx)
	if err != nil {
		return observed{}, err
	}
	begun := time.Now()
	if !door.Until(ctx, begun.Add(b.Look)) {
		return observed{}, context.Cause(ctx)
	}
	after, err := b.redis.Usage(ctx)
	if err != nil {
		return observed{}, err
	}
	took := time.Since(begun).Seconds()
	o := observed{
		commands: float64(after.Commands-before.Commands) / took, cpu: (after.CPU - before.CPU).Seconds() / took,
		connections: after.Connections - 1, calls: map[string]int64{},
	}
	for name, n := range after.Calls {
		if d := n - before.Calls[name]; d > 0 {
			o.calls[name] = d
		}
	}
	fmt.Fprintf(b.progress, "%.0f commands/s, %.1f %% of a core, %d connections: %s\n", o.commands, 100*o.cpu,
		o.connections, o.most(took))
	return o, nil
}

// most lists the most frequent commands.
func (o observed) most(seconds float64) string {
	var list []string
	for _, name := range top(o.calls, 12) {
		list = append(list, fmt.Sprintf("%s %.0f/s", name, float64(o.calls[name])/seconds))
	}
	return strings.Join(list, ", ")
}
