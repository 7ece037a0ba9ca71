package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/workspace"
)

// many starts tasks of one repository at the same time. Each makes a clone and a change and publishes a branch.
func (b *bench) many(ctx context.Context) error {
	if err := b.origin.commit(ctx, []int{0}); err != nil { // something to fetch
		return err
	}
	var (
		all     sync.WaitGroup
		errs    = make([]error, b.Tasks)
		cloned  = make([]time.Duration, b.Tasks)
		asked   = b.origin.asked.Load()
		took, _ = timed(func() error {
			for n := range b.Tasks {
				all.Go(func() { cloned[n], errs[n] = b.task(ctx, n) })
			}
			all.Wait()
			return nil
		})
	)
	failed := 0
	for n, err := range errs {
		if err == nil {
			err = git(ctx, nil, "-C", b.origin.dir, "cat-file", "-e", branch(n)+":"+newFile)
		}
		if err != nil {
			failed++
			errs[n] = fmt.Errorf("task %d: %w", n, err)
		}
	}
	b.report.Most(fmt.Sprintf("of %d tasks at once, those that failed", b.Tasks), float64(failed), 0, "%.0f")
	b.report.Note("all of them, from the first clone to the last push", took.Seconds(), "%.1f s")
	b.report.Note("until a task has its clone", table.Median(cloned).Seconds(), "%.1f s")
	b.report.Note("times that one of them asked the remote what is new", float64(b.origin.asked.Load()-asked), "%.0f")
	return errors.Join(errs...)
}

const newFile = "new.txt"

func branch(n int) string { return "errand/task" + strconv.Itoa(n) }

// task is one of many.
func (b *bench) task(ctx context.Context, n int) (cloned time.Duration, err error) {
	var c workspace.Clone
	cloned, err = timed(func() (err error) {
		c, err = b.space.Checkout(ctx, workspace.Want{Thread: "task" + strconv.Itoa(n), Repo: repo})
		return err
	})
	if err != nil {
		return cloned, err
	}
	if err := clean(ctx, c.Dir); err != nil {
		return cloned, err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, newFile), []byte(branch(n)+"\n"), 0o600); err != nil {
		return cloned, fmt.Errorf("change the clone: %w", err)
	}
	pushed, err := b.space.Publish(ctx, c, workspace.Publication{
		Branch: branch(n), Message: "Change something\n", Permit: func(context.Context, string) error { return nil },
	})
	if err == nil && !pushed.New {
		err = errors.New("nothing was pushed")
	}
	return cloned, err
}
