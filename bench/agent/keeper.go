package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
)

// This file starts a program as the keeper of a silent CLI, as package agent does: identified by argv[0], with orders
// on descriptor 3 and status on descriptor 4.

// company is the number of keepers that share their pages in the measurement. A worker has one for each run.
const company = 10

// keeper measures the memory of keepers.
func (b *bench) keeper(ctx context.Context) error {
	program, name := b.Keeper, "a keeper"
	if program == "" {
		program, name = b.self, "this program as a keeper"
	}
	alone, err := b.upkeep(ctx, program)
	if err != nil {
		return err
	}
	together, err := b.upkeepTogether(ctx, program)
	if err != nil {
		return err
	}
	b.report.Most(fmt.Sprintf("PSS of %s, one of %d", name, company), mega(together), 1.5, "%.1f MB")
	b.report.Note("the same without shared pages", mega(alone), "%.1f MB")
	return nil
}

// upkeep is the PSS of a keeper that shares its program with no other.
func (b *bench) upkeep(ctx context.Context, program string) (pss int64, err error) {
	var all []int64
	for range b.Keepers {
		k, err := b.startKeeper(ctx, program)
		if err != nil {
			return 0, err
		}
		memory, err := proportional(k.cmd.Process.Pid)
		if err := errors.Join(err, k.end()); err != nil {
			return 0, err
		}
		all = append(all, memory)
	}
	return table.Median(all), nil
}

// upkeepTogether is the PSS of one of several keepers.
func (b *bench) upkeepTogether(ctx context.Context, program string) (pss int64, err error) {
	var all []*keeper
	defer func() {
		for _, k := range all {
			err = errors.Join(err, k.end())
		}
	}()
	for range company {
		k, err := b.startKeeper(ctx, program)
		if err != nil {
			return 0, err
		}
		all = append(all, k)
	}
	var sizes []int64
	for _, k := range all {
		size, err := proportional(k.cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		sizes = append(sizes, size)
	}
	return table.Median(sizes), nil
}

// keeper is the keeper of a silent CLI.
type keeper struct {
	cmd                    *exec.Cmd
	stdin, control, status *os.File
}

func (b *bench) startKeeper(ctx context.Context, program string) (_ *keeper, err error) {
	k := &keeper{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start %s as a keeper: %w", program, errors.Join(err, k.end()))
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var stdin, control, status *os.File // its ends
	stdin, k.stdin = pipe()
	control, k.control = pipe()
	k.status, status = pipe()
	defer func() { _, _, _ = stdin.Close(), control.Close(), status.Close() }()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Args = []string{"errand-keeper"}
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=10", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"}
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	cmd.ExtraFiles = []*os.File{control, status}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k.cmd = cmd
	_ = status.Close() // to notice its end if it reports nothing
	err = json.NewEncoder(k.control).Encode(map[string]any{
		"path": b.self, "args": []string{b.self}, "env": environment(fakecli.CLI), "dir": "/", "orphan": time.Second,
	})
	if err != nil {
		return nil, err
	}
	var word struct {
		Error string `json:"error"`
	}
	if err := json.NewDecoder(k.status).Decode(&word); err != nil {
		return nil, err
	}
	if word.Error != "" {
		return nil, errors.New(word.Error)
	}
	return k, nil
}

// end closes the keeper's control pipe, after which it ends its CLI and itself.
func (k *keeper) end() error {
	_, _, _ = k.control.Close(), k.stdin.Close(), k.status.Close()
	if k.cmd == nil {
		return nil
	}
	return k.cmd.Wait()
}
