package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
)

// crowd lets many runs write at the same time and checks every line in its raw log.
func (b *bench) crowd(ctx context.Context) error {
	var took time.Duration
	if err := b.ask(ctx, order{Job: "crowd", Runs: b.Crowd, Lines: b.Lines}, &took); err != nil {
		return err
	}
	lost := 0
	for i := range b.Crowd {
		got, err := inOrder(filepath.Join(b.dir, crowdID(i)+".ndjson"))
		if err != nil {
			return err
		}
		lost += b.Lines - got
	}
	b.report.Note(fmt.Sprintf("%d runs with bursts of %d lines at once", b.Crowd, b.Lines), took.Seconds(), "%.1f s")
	b.report.Most("lines of these that are not in the logs, in their order", float64(lost), 0, "%.0f")
	return nil
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
		if !strings.Contains(lines.Text(), `"text_delta"`) {
			continue
		}
		if !strings.Contains(lines.Text(), fmt.Sprintf(`"text":%q`, fakecli.Number(n+1))) {
			break
		}
		n++
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read log: %w", err)
	}
	return n, nil
}

// crowdOfRuns is the worker's part: the runs start to write when all of them are alive. It returns the time they take.
func crowdOfRuns(ctx context.Context, runner *agent.Runner, o order) (time.Duration, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var runs, starting sync.WaitGroup
	starting.Add(o.Runs)
	all := make(chan struct{})
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
				next: once(all, "numbers "+strconv.Itoa(o.Lines)),
			})
			if err != nil {
				stop(err)
			}
		})
	}
	starting.Wait()
	close(all)
	begun := time.Now()
	runs.Wait()
	return time.Since(begun), context.Cause(ctx)
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
