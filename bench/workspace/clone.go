package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/workspace"
)

// clone compares a thread's first clone with git's own of the same mirror, in turns. errand's asks the remote for
// changes first.
func (b *bench) clone(ctx context.Context) error {
	var plain, own []time.Duration
	for n := range b.Readings {
		dir := filepath.Join(b.dir, "plain")
		took, err := timed(func() error {
			mirror := filepath.Join(b.dir, "workspace", "mirrors", repo+".git")
			return git(ctx, nil, "-c", "checkout.workers=2", "clone", "--quiet", "--shared", mirror, dir)
		})
		if err != nil {
			return err
		}
		plain = append(plain, took)
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove clone: %w", err)
		}
		var c workspace.Clone
		took, err = timed(func() (err error) {
			c, err = b.space.Checkout(ctx, workspace.Want{Thread: "clone" + strconv.Itoa(n), Repo: repo})
			return err
		})
		if err != nil {
			return err
		}
		own = append(own, took)
		if err := os.RemoveAll(c.Dir); err != nil {
			return fmt.Errorf("remove clone: %w", err)
		}
	}
	b.report.Note("git clone --shared", table.Median(plain).Seconds(), "%.2f s")
	b.report.Note("a thread's first clone, with a look at the remote", table.Median(own).Seconds(), "%.2f s")
	b.report.Most("the same, as a multiple of git clone --shared",
		table.Median(own).Seconds()/table.Median(plain).Seconds(), 1.2, "%.2f")
	return nil
}

// next measures a checkout of the next head in a clone that a run has changed.
func (b *bench) next(ctx context.Context) error {
	want := workspace.Want{Thread: "next", Repo: repo}
	c, err := b.space.Checkout(ctx, want)
	if err != nil {
		return err
	}
	var all []time.Duration
	for range b.Readings {
		if err := b.traces(c.Dir); err != nil {
			return err
		}
		changed := make([]int, 20)
		for n := range changed {
			changed[n] = n * b.Files / len(changed)
		}
		if err := b.origin.commit(ctx, changed); err != nil {
			return err
		}
		before := c.Head
		took, err := timed(func() (err error) {
			c, err = b.space.Checkout(ctx, want)
			return err
		})
		if err != nil {
			return err
		}
		if c.Head == before {
			return fmt.Errorf("the clone is still at %s", before)
		}
		if err := clean(ctx, c.Dir); err != nil {
			return err
		}
		all = append(all, took)
	}
	b.report.Most("the next head in an existing clone", table.Median(all).Seconds(), 1, "%.2f s")
	return nil
}

// instructions measures how long a run waits for the instructions of its base branch.
func (b *bench) instructions(ctx context.Context) error {
	c, err := b.space.Checkout(ctx, workspace.Want{Thread: "next", Repo: repo})
	if err != nil {
		return err
	}
	var all []time.Duration
	for range b.Readings {
		took, err := timed(func() error {
			set, err := b.space.Instructions(ctx, c)
			if err == nil && len(set.Texts) != 2 {
				err = fmt.Errorf("the instructions are %v", set.Names())
			}
			return err
		})
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	b.report.Most("the instructions of the base branch", table.Median(all).Seconds(), 0.1, "%.2f s")
	return nil
}

// traces changes a hundred files and adds a hundred, as a run would.
func (b *bench) traces(dir string) error {
	for n := range 100 {
		for _, name := range []string{name(n * b.Files / 100), fmt.Sprintf("build/%d/out", n)} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return fmt.Errorf("leave traces: %w", err)
			}
			if err := os.WriteFile(path, []byte("of a run\n"), 0o600); err != nil {
				return fmt.Errorf("leave traces: %w", err)
			}
		}
	}
	return nil
}

// clean checks that a clone contains only its commit.
func clean(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "status", "--porcelain", "--ignored")
	out, err := cmd.Output()
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("%.200q", out)
	}
	if err != nil {
		return fmt.Errorf("look into clone: %w", err)
	}
	return nil
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}
