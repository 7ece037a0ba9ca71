package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
)

// crowd lets many runs live beside programs that use all processors, then write at the same time, and checks every line
// in its log.
func (b *bench) crowd(ctx context.Context) error {
	var seen crowded
	o := order{Job: "crowd", Runs: b.Crowd, Lines: b.Lines, Loops: b.Loops, Beside: b.Beside}
	if err := b.ask(ctx, o, &seen); err != nil {
		return err
	}
	lost := 0
	for i := range b.Crowd {
		got, err := inOrder(filepath.Join(b.dir, crowdID(i)+".log"))
		if err != nil {
			return err
		}
		lost += b.Lines - got
	}
	for _, why := range seen.Ended {
		_, _ = fmt.Fprintln(b.progress, why)
	}
	beside := fmt.Sprintf("of %d runs, ended by %s beside %d busy loops", b.Crowd, b.Beside, b.Loops)
	b.report.Most(beside, float64(len(seen.Ended)), 0, "%.0f")
	b.report.Note(fmt.Sprintf("%d runs with bursts of %d lines at once", b.Crowd, b.Lines), seen.Took.Seconds(), "%.1f s")
	b.report.Most("lines of these that are not in the logs, in their order", float64(lost), 0, "%.0f")
	return nil
}

// crowded is what the worker of a crowd has seen.
type crowded struct {
	Ended []string      // why runs ended early
	Took  time.Duration // from the beginning of the bursts to the end of the last run
}

func crowdID(i int) string { return "crowd-" + strconv.Itoa(i) }

// inOrder counts the numbered lines of a log up to the first that is out of order.
func inOrder(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if !strings.HasSuffix(lines.Text(), " of many") {
			continue
		}
		if !strings.HasSuffix(lines.Text(), " "+strings.TrimSpace(fakecli.Number(n+1))) {
			break
		}
		n++
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
}

// crowdOfRuns is the worker's part: the runs start to write when all of them are alive and have outlived the loops.
func crowdOfRuns(ctx context.Context, runner *agent.Runner, o order) (crowded, error) {
	var runs, starting sync.WaitGroup
	starting.Add(o.Runs)
	ended := make(chan string, o.Runs)
	write := make(chan struct{})
	for i := range o.Runs {
		runs.Go(func() {
			started := sync.OnceFunc(starting.Done)
			defer started()
			_, err := complete(ctx, runner, spec(crowdID(i), "wait"), host{
				event: func(e agent.Event) {
					if e.Kind == agent.Started {
						started()
					}
				},
				next: once(write, "numbers "+strconv.Itoa(o.Lines)),
			})
			if err != nil {
				ended <- err.Error()
			}
		})
	}
	starting.Wait()
	if err := busy(ctx, o.Loops, o.Beside); err != nil {
		return crowded{}, err
	}
	close(write)
	begun := time.Now()
	runs.Wait()
	seen := crowded{Took: time.Since(begun)}
	close(ended)
	for why := range ended {
		seen.Ended = append(seen.Ended, why)
	}
	return seen, nil
}

// busy lets programs use as many processors as they get, for some time.
func busy(ctx context.Context, loops int, lasting time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, lasting)
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for range loops {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			stop()
			return fmt.Errorf("start a busy loop: %w", err)
		}
		all.Go(func() { _ = loop.Wait() }) // it is killed
	}
	<-ctx.Done()
	return nil
}

// once sends one message when it is due, and no more.
func once(time <-chan struct{}, text string) func(context.Context) (agent.Message, bool) {
	said := false
	return func(ctx context.Context) (agent.Message, bool) {
		if said {
			time = nil
		}
		select {
		case <-time:
			said = true
			return agent.Message{Text: text}, true
		case <-ctx.Done():
			return agent.Message{}, false
		}
	}
}
