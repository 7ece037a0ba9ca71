package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

const (
	every = 50 * time.Millisecond // a run has an event
	// for which a worker of the fleet keeps what follows an event, see tasks/worker/attempt/recorder.go
	gather = 100 * time.Millisecond
)

// work is the worker: it starts its tasks, prints their IDs, and follows instructions until stdin ends.
func work(ctx context.Context, redisURL string, in io.Reader, out io.Writer) (err error) {
	n, err := strconv.Atoi(os.Getenv(workerVariable))
	if err != nil {
		return fmt.Errorf("read how many runs there are: %w", err)
	}
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		return fmt.Errorf("parse REDIS_URL: %w", err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		return err
	}
	desk := desk.New(s, queue.New(s, client, time.Hour), rights.Policy{}, nil)
	ctx, cancel := context.WithCancel(ctx)
	var kept sync.WaitGroup
	defer kept.Wait()
	defer cancel()
	var runs []*playedRun
	for i := range n {
		c, err := begin(ctx, s, desk, i)
		if err != nil {
			return err
		}
		kept.Go(func() { c.Keep(ctx, store.Watch{}) })
		runs = append(runs, &playedRun{claim: c})
		fmt.Fprintln(out, c.ID())
	}
	for told := bufio.NewScanner(in); told.Scan(); {
		what, amount, _ := strings.Cut(told.Text(), " ")
		n, err := 0, error(nil)
		switch what {
		case apart, joint:
			n, err = together(runs, func(i int, r *playedRun) error { r.start(ctx, i, what == joint); return nil })
			if err == nil {
				continue // it is answered when they rest
			}
		case still:
			n, err = together(runs, func(_ int, r *playedRun) error { return r.rest() })
		case fill:
			n, err = together(runs, func(_ int, r *playedRun) error { return r.fill(ctx, amount) })
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, n)
	}
	_, err = together(runs, func(_ int, r *playedRun) error { return r.end(ctx) })
	return err
}

// begin submits a task and takes it.
func begin(ctx context.Context, s *store.Store, desk *desk.Desk, i int) (*store.Claim, error) {
	receipt, err := desk.Submit(ctx, tasks.Task{
		ID: tasks.NewID(time.Now(), "chat", strconv.Itoa(i)), Source: "chat", Kind: "prompt",
		Thread: "chat/" + strconv.Itoa(i), Class: tasks.Interactive, Profile: agent.Write, Actor: "ann",
		Repo: "acme/shop", Prompt: "Please look at the build.",
	})
	if err != nil {
		return nil, err
	}
	return s.Claim(ctx, receipt.ID, 0, "worker-1")
}

// together calls a function for all runs at once and returns the number of events written so far.
func together(runs []*playedRun, do func(int, *playedRun) error) (wrote int, _ error) {
	errs := make([]error, len(runs))
	var all sync.WaitGroup
	for i, r := range runs {
		all.Go(func() { errs[i] = do(i, r) })
	}
	all.Wait()
	for _, r := range runs {
		wrote += int(r.wrote.Load())
	}
	return wrote, errors.Join(errs...)
}

// playedRun is a run whose agent is made up. It is used by one goroutine at a time.
type playedRun struct {
	claim *store.Claim
	made  int          // events, ever
	wrote atomic.Int64 // since start, or by fill: asked for while it plays, too
	stop  chan struct{}
	done  chan error
}

// start lets it have events from now on. Runs do not keep step with each other.
func (r *playedRun) start(ctx context.Context, i int, joint bool) {
	r.wrote.Store(0)
	r.stop, r.done = make(chan struct{}), make(chan error, 1)
	go func() { r.done <- r.play(ctx, time.Duration(i)*7*time.Millisecond%gather, joint) }()
}

func (r *playedRun) play(ctx context.Context, later time.Duration, joint bool) error {
	first := time.NewTimer(later)
	defer first.Stop()
	select {
	case <-first.C:
	case <-r.stop:
		return nil
	}
	tick, tock := time.NewTicker(every), time.NewTicker(gather)
	defer tick.Stop()
	defer tock.Stop()
	var waiting []json.RawMessage
	for over := false; !over; {
		due := !joint
		select {
		case <-tick.C:
			waiting = append(waiting, r.event())
		case <-tock.C:
			due = true
		case <-r.stop:
			due, over = true, true
		}
		if !due || len(waiting) == 0 {
			continue
		}
		if err := r.claim.Append(ctx, waiting...); err != nil {
			return err
		}
		r.wrote.Add(int64(len(waiting)))
		waiting = nil
	}
	return nil
}

// rest returns when it has written all that it had.
func (r *playedRun) rest() error {
	close(r.stop)
	return <-r.done
}

// fill writes many events as fast as they are taken.
func (r *playedRun) fill(ctx context.Context, amount string) error {
	n, err := strconv.Atoi(amount)
	if err != nil {
		return fmt.Errorf("read how many events to write: %w", err)
	}
	for left := n; left > 0; left -= 100 {
		var some []json.RawMessage
		for range min(100, left) {
			some = append(some, r.event())
		}
		if err := r.claim.Append(ctx, some...); err != nil {
			return err
		}
	}
	r.wrote.Store(int64(n))
	return nil
}

func (r *playedRun) end(ctx context.Context) error {
	ending, err := json.Marshal(tasks.Ending{Kind: tasks.Answered})
	if err != nil {
		return fmt.Errorf("marshal ending: %w", err)
	}
	return errors.Join(r.claim.End(ctx, ending), r.claim.Release(ctx))
}

// event makes up the next one: mostly pieces of text, and now and then a tool call with what it brings.
func (r *playedRun) event() json.RawMessage {
	e := agent.Event{
		Time: time.Now(), Kind: agent.Text,
		Text: "The build fails in the third step, because the cache it restores is of another branch. ",
	}
	switch call := fmt.Sprintf("toolu_%d", r.made/10); r.made % 10 {
	case 0:
		e.Kind, e.Text, e.Tool, e.ToolID = agent.ToolUse, "Bash", "Bash", call
		e.Input = json.RawMessage(`{"command":"go test -run TestCache ./internal/cache/...","description":"Run the tests of the cache"}`)
	case 1:
		e.Kind, e.ToolID, e.Text = agent.ToolResult, call,
			strings.Repeat("ok  \tgithub.com/acme/shop/internal/cache\t0.412s\n", 40)
	}
	r.made++
	b, err := json.Marshal(e)
	if err != nil {
		panic(err) // it has nothing that cannot be
	}
	return b
}
