package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// The instructions to the worker, one a line on its stdin.
const (
	apart = "apart" // each run writes its events, each by itself, from now on
	joint = "joint" // the same, but what comes within 100 ms travels together, as a worker of the fleet has it
	still = "still" // they stop; it answers how many were written since
	fill  = "fill"  // each run writes that many at once; it answers when they are written
)

// worker is the process that plays the runs.
type worker struct {
	ids []string // of the tasks that run

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// hire starts a worker with that many runs.
func (b *bench) hire(ctx context.Context, runs int) (*worker, error) {
	cmd := exec.CommandContext(ctx, b.self)
	cmd.Env = append(os.Environ(), workerVariable+"="+strconv.Itoa(runs), "REDIS_URL="+b.redisURL)
	cmd.Stderr = b.progress
	cmd.WaitDelay = 10 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	w := &worker{cmd: cmd, in: in, out: bufio.NewScanner(out)}
	for range runs {
		id, err := w.hear()
		if err != nil {
			return nil, errors.Join(err, w.stop())
		}
		w.ids = append(w.ids, id)
	}
	return w, nil
}

func (w *worker) tell(what string) error {
	if _, err := fmt.Fprintln(w.in, what); err != nil {
		return fmt.Errorf("write to the worker: %w", err)
	}
	return nil
}

func (w *worker) hear() (string, error) {
	if !w.out.Scan() {
		return "", fmt.Errorf("hear from the worker: %w", errors.Join(io.ErrUnexpectedEOF, w.out.Err()))
	}
	return w.out.Text(), nil
}

// rest stops the runs and returns the number of events that they wrote.
func (w *worker) rest() (int, error) {
	if err := w.tell(still); err != nil {
		return 0, err
	}
	return w.number()
}

// fill lets each run write n events at once.
func (w *worker) fill(n int) error {
	if err := w.tell(fmt.Sprint(fill, " ", n)); err != nil {
		return err
	}
	_, err := w.number()
	return err
}

func (w *worker) number() (int, error) {
	said, err := w.hear()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		return 0, fmt.Errorf("hear from the worker: %w", err)
	}
	return n, nil
}

// stop ends the tasks, and the process.
func (w *worker) stop() error {
	_ = w.in.Close()
	if err := w.cmd.Wait(); err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}
