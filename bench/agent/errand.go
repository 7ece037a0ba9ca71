package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// readRun is the run that reads the session.
const readRun = "read"

// errand reads the session with package agent: in a worker process, with its keeper, and with both logs written through
// a redactor that knows eight secrets.
func (b *bench) errand(ctx context.Context) (s sample, err error) {
	if err := b.ask(ctx, order{Job: "read", Session: b.session}, &s); err != nil {
		return sample{}, err
	}
	return s, b.removeLogs(readRun) // the next reading must not append to them
}

// profile reads the session again with profiling, whose cost must not affect the samples.
func (b *bench) profile(ctx context.Context) error {
	if b.Profile == "" {
		return nil
	}
	path, err := filepath.Abs(b.Profile)
	if err != nil {
		return fmt.Errorf("name profile: %w", err)
	}
	return b.ask(ctx, order{Job: "read", Session: b.session, Profile: path}, &sample{})
}

func (b *bench) removeLogs(id string) error {
	return errors.Join(os.Remove(filepath.Join(b.dir, id+".log")), os.Remove(filepath.Join(b.dir, id+".ndjson")))
}

// readSession is the worker's part.
func readSession(ctx context.Context, runner *agent.Runner, o order) (s sample, err error) {
	if o.Profile != "" {
		f, err := os.Create(o.Profile)
		if err != nil {
			return sample{}, fmt.Errorf("create profile: %w", err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return sample{}, fmt.Errorf("start profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	var keeperRSS int64
	var keeperErr error
	// everything has been read, and the keeper is alive
	atIdle := host{idle: func() { keeperRSS, keeperErr = keeperPeak() }}
	own, started := used(syscall.RUSAGE_SELF), time.Now()
	res, err := complete(ctx, runner, spec(readRun, "replay "+o.Session), atIdle)
	s = sample{Wall: time.Since(started), CPU: used(syscall.RUSAGE_SELF) - own}
	if err != nil {
		return sample{}, err
	}
	if r := res.Resources; r.Raw+r.Cut > 0 || len(r.Unknown) > 0 || r.LogErr != "" {
		return sample{}, fmt.Errorf("run %s: it did not understand the session: %+v", readRun, r)
	}
	// The keeper is this process's only child, and the CLI is the keeper's; the result includes the CLI.
	s.CPU += max(0, used(syscall.RUSAGE_CHILDREN)-res.Resources.CPU)
	s.Lines = res.Resources.Lines - 1 // the response to initialize is not part of the session
	workerRSS, err := memoryOf(os.Getpid(), peak)
	s.RSS = workerRSS + keeperRSS
	return s, errors.Join(err, keeperErr)
}

// keeperPeak is the peak RSS of the one keeper that this process has.
func keeperPeak() (int64, error) {
	pids, err := children()
	if err == nil && len(pids) != 1 {
		err = fmt.Errorf("%d processes could be it", len(pids))
	}
	if err != nil {
		return 0, fmt.Errorf("find the keeper: %w", err)
	}
	return memoryOf(pids[0], peak)
}

// used is the CPU time of this process (RUSAGE_SELF), or of its children that have ended, and of theirs
// (RUSAGE_CHILDREN).
func used(who int) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(who, &u); err != nil {
		panic("getrusage: " + err.Error()) // it fails only for wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
