package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
)

// killLeader kills the CLI while its tools run and measures until Run has returned, which means that no process of the
// run is alive.
func (b *bench) killLeader(ctx context.Context) error {
	runner, err := newRunner(order{Dir: b.dir, Keeper: b.Keeper})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var took []time.Duration
	for i := range b.LeaderKills {
		tree, ended, err := startTree(ctx, runner, spec(fmt.Sprintf("leader-%d", i), "tools"))
		if err != nil {
			return err
		}
		started := time.Now()
		if err := unix.Kill(tree.Leader, unix.SIGKILL); err != nil {
			return fmt.Errorf("kill leader: %w", err)
		}
		if err := <-ended; err != nil {
			return fmt.Errorf("run: %w", err)
		}
		took = append(took, time.Since(started))
		for _, pid := range tree.All() {
			if unix.Kill(pid, 0) == nil {
				return fmt.Errorf("process %d of %+v lives after its run", pid, tree)
			}
		}
	}
	b.report.Most("leader killed, until all processes are gone", table.Milliseconds(table.Median(took)), 100, "%.0f ms")
	b.report.Note("the slowest of these", table.Milliseconds(slices.Max(took)), "%.0f ms")
	return nil
}

// startTree starts a run and returns when all of its processes are alive; ended is closed when Run has returned.
func startTree(
	ctx context.Context, runner *agent.Runner, s agent.Spec,
) (tree fakecli.Processes, ended <-chan error, err error) {
	said, over := make(chan fakecli.Processes, 1), make(chan error, 1)
	h := host{event: func(e agent.Event) {
		var p fakecli.Processes
		if e.Kind == agent.Text && json.Unmarshal([]byte(e.Text), &p) == nil {
			said <- p
		}
	}}
	go func() {
		_, err := runner.Run(ctx, s, h)
		over <- err
	}()
	select {
	case tree = <-said:
		return tree, over, nil
	case err := <-over:
		return tree, nil, errors.Join(errors.New("start the processes of a run: it ended at once"), err)
	}
}

// killWorker kills a worker whose CLI and tools ignore TERM, and measures until the keeper has ended them.
func (b *bench) killWorker(ctx context.Context) error {
	var took []time.Duration
	for range b.WorkerKills {
		d, err := b.killOne(ctx)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	b.report.Most("worker killed, until all processes are gone, at the slowest", slices.Max(took).Seconds(), 8,
		"%.1f s")
	return nil
}

// killLimit bounds the wait for processes that should have ended.
const killLimit = 30 * time.Second

func (b *bench) killOne(ctx context.Context) (time.Duration, error) {
	var tree fakecli.Processes
	worker, err := b.startWorker(ctx, order{Job: "victim", Grace: b.Grace}, &tree)
	if err != nil {
		return 0, err
	}
	var all []*os.Process
	for _, pid := range tree.All() {
		p, err := os.FindProcess(pid) // a handle, so a reused PID is not affected
		if err != nil {
			return 0, errors.Join(fmt.Errorf("find process: %w", err), worker.Process.Kill(), worker.Wait())
		}
		all = append(all, p)
	}
	started := time.Now()
	if err := worker.Process.Kill(); err != nil {
		return 0, fmt.Errorf("kill worker: %w", err)
	}
	_ = worker.Wait() // the error says that it was killed
	for _, p := range all {
		if err := awaitEnd(p, started.Add(killLimit)); err != nil {
			return 0, fmt.Errorf("wait for the end of process %d of %+v: %w", p.Pid, tree, err)
		}
	}
	return time.Since(started), nil
}

// awaitEnd waits for the end of a process, which need not be a child.
func awaitEnd(p *os.Process, deadline time.Time) error {
	defer func() { _ = p.Release() }()
	var polled error
	err := p.WithHandle(func(handle uintptr) {
		for {
			// Readable when the process has ended.
			fds := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}} //nolint:gosec // G115: a descriptor is a small number
			n, err := unix.Poll(fds, max(0, int(time.Until(deadline).Milliseconds())))
			switch {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				polled = err
			case n == 0:
				polled = context.DeadlineExceeded
			}
			return
		}
	})
	return errors.Join(err, polled)
}

// victim is the worker to kill: it prints the PIDs of its run and waits.
func victim(ctx context.Context, runner *agent.Runner, out *json.Encoder) error {
	tree, ended, err := startTree(ctx, runner, spec("victim", "stubborn"))
	if err != nil {
		return err
	}
	if err := out.Encode(tree); err != nil {
		return fmt.Errorf("say pids: %w", err)
	}
	return <-ended
}
