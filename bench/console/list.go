package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/redisbatch"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// list measures the time to the first byte of lists of tasks.
func (b *bench) list(ctx context.Context) (err error) {
	s, err := b.set(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if err := b.archive(ctx); err != nil {
		return err
	}
	for _, l := range []struct{ what, path string }{
		{"the newest tasks", "/"},
		{"those of a repository", "/?repository=acme/shop-7"},
		{"those that wait", "/?state=waiting"},
		{"a person without tasks", "/?person=nobody"},
		{"a text that is in none", "/?text=nowhere+to+be+found"},
		{"by the API, the newest tasks", "/api/tasks"},
		{"by the API, a text that is in none", "/api/tasks?text=nowhere+to+be+found"},
	} {
		if err := s.reportFirstBytes(ctx, "a list: "+l.what, l.path); err != nil {
			return err
		}
	}
	return nil
}

// reportFirstBytes measures the time to the first byte of a page.
func (s *stage) reportFirstBytes(ctx context.Context, what, path string) error {
	delays, err := s.firstBytes(ctx, path)
	if err != nil {
		return err
	}
	s.report.Most("first byte of "+what+", p50", table.Milliseconds(delays.Percentile(.5)), 50, "%.1f ms")
	s.report.Most("the same, p99", table.Milliseconds(delays.Percentile(.99)), 50, "%.1f ms")
	return nil
}

// firstBytes requests a list repeatedly.
func (s *stage) firstBytes(ctx context.Context, path string) (door.Load, error) {
	conn, in, err := dial(ctx, s.front.Addr)
	if err != nil {
		return door.Load{}, err
	}
	defer conn.Close()
	var l door.Load
	for i := range s.Asked + s.Asked/10 {
		first := &firstByte{Conn: conn}
		in.Reset(first)
		begun := time.Now()
		if err := skip(first, in, path); err != nil {
			return door.Load{}, err
		}
		if i >= s.Asked/10 { // the first ones are to warm up
			l.Delays = append(l.Delays, first.at.Sub(begun))
		}
	}
	slices.Sort(l.Delays)
	return l, nil
}

// firstByte records the time of the first read.
type firstByte struct {
	net.Conn
	at time.Time
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return n, err
}

// archive fills the store with tasks of many people and repositories. All but the newest hundredth have ended.
func (b *bench) archive(ctx context.Context) error {
	opt, err := redis.ParseURL(b.redisURL)
	if err != nil {
		return fmt.Errorf("parse the address of Redis: %w", err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	redisbatch.Add(client)
	st, err := store.New(store.Config{Redis: client})
	if err != nil {
		return err
	}
	desk := desk.New(st, queue.New(st, client, time.Hour), rights.Policy{}, nil)
	ending, err := json.Marshal(tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: answer}})
	if err != nil {
		return fmt.Errorf("marshal ending: %w", err)
	}
	begun := time.Now()
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, 64)
	for w := range errs {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.Tasks && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = b.file(ctx, st, desk, begun.Add(time.Duration(i-b.Tasks)*time.Second), i, ending)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// answer has a typical size.
const answer = "The build failed because the cache that its third step restores was written by another branch. The " +
	"key now has the branch in it, and a run without a cache passes. I looked at the last twenty " +
	"failures: all had the same cause.\n"

// file puts the i-th task into the store.
func (b *bench) file(
	ctx context.Context, st *store.Store, desk *desk.Desk, at time.Time, i int, ending json.RawMessage,
) error {
	receipt, err := desk.Submit(ctx, tasks.Task{
		ID: tasks.NewID(at, "slack", "c0-"+strconv.Itoa(i)), Source: "slack", Kind: "mention",
		Thread: "slack/T0/C0/" + strconv.Itoa(i), Class: tasks.Interactive, Profile: agent.Write,
		Actor: "U" + strconv.Itoa(i%97), Repo: "acme/shop-" + strconv.Itoa(i%19),
		Prompt: "Please look at the build of yesterday evening: it failed, and the log says little about the cause. " +
			"If it is the cache, fix it.",
	})
	if err != nil || i >= b.Tasks-b.Tasks/100 {
		return err
	}
	_, err = st.EndWaiting(ctx, receipt.ID, ending)
	return err
}
