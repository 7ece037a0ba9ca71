package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/fake/container"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// The workers of which each gets one task.
const (
	staying  = "a worker that stays"
	ready    = "a ready worker -once"
	starting = "a container that has to start"
)

// once measures from Submit to the first instruction of the CLI. The kinds of workers take turns, one at a time.
func (b *bench) once(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 20*time.Minute, errors.New("a task was not started"))
	defer cancel()
	l, err := fakecli.Listen(ctx, b.dir)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	took := map[string][]time.Duration{}
	for i := range b.Starts {
		for n, kind := range []string{staying, ready, starting} {
			name := fmt.Sprintf("w%d-%d", i, n)
			in, err := container.New(dir, name, "")
			if err != nil {
				return fmt.Errorf("start a worker: %w", err)
			}
			p := b.worker(filepath.Join(dir, name))
			if kind != staying {
				p.Args, p.Env, p.Wrap = append(p.Args, in.Args()...), append(p.Env, in.Env()...), in.Wrap
			}
			d, err := b.first(ctx, l, p, kind)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			took[kind] = append(took[kind], d)
		}
	}
	r, usual := &b.report, table.Median(took[staying])
	r.Note("from Submit to the CLI, p50, of "+staying, table.Milliseconds(usual), "%.0f ms")
	r.Most("of "+ready+", as a multiple", float64(table.Median(took[ready]))/float64(usual), 2, "%.1f")
	r.Most("of "+starting+", as a multiple", float64(table.Median(took[starting]))/float64(usual), 8, "%.1f")
	return nil
}

// first starts a worker, lets it run one task, and ends it. It returns the time from Submit, or from the start if the
// worker has to start, to the CLI.
func (b *bench) first(ctx context.Context, l net.Listener, p door.Program, kind string) (took time.Duration, err error) {
	launched := time.Now()
	s, err := p.Launch(ctx)
	if err != nil {
		return 0, err
	}
	end := (*door.Server).Stop
	defer func() { err = errors.Join(err, end(s)) }()
	if kind != starting {
		if err := b.until(ctx, "the worker can run tasks", func() (bool, error) {
			alive, err := b.store.Workers.List(ctx)
			return slices.ContainsFunc(alive, func(w store.Worker) bool {
				return w.Started.After(launched) && capacity.Able(w)
			}), err
		}); err != nil {
			return 0, err
		}
	}
	begun := time.Now()
	if kind == starting {
		begun = launched
	}
	ids, err := b.submit(ctx, filepath.Base(p.Dir), "numbers 1", 1)
	if err != nil {
		return 0, err
	}
	conn, err := l.Accept()
	took = time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("wait for the CLI: %w", err)
	}
	defer conn.Close()
	if kind != staying {
		end = (*door.Server).Wait
	}
	return took, b.until(ctx, "the task has ended", func() (bool, error) {
		rec, err := b.store.Get(ctx, ids[0])
		return rec.State == store.Ended, err
	})
}
