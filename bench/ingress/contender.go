package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/bench/door"
)

// queue is the queue of interactive tasks, which the bare contender also uses.
const queue = "interactive"

// The names of the contenders in the table.
const (
	bareName = "bare asynq"
	boltName = "Bolt + BullMQ"
	ownName  = "errand"
)

// contender receives Slack events and puts them into a queue.
type contender struct {
	door.Program
	path  string // of its URL
	list  string // in Redis, whose length is that of the queue
	inbox string // a queue of asynq's for events that are answered and not interpreted yet; empty: there is none
}

func (b *bench) contenders() ([]contender, error) {
	pending := "asynq:{" + queue + "}:pending"
	list := []contender{
		{door.Program{
			Name: bareName, Args: []string{b.self}, Env: []string{bareVariable + "=1"}, Dir: b.dir, Redis: b.redisURL,
		}, "/", pending, ""},
		{door.FrontDoor(b.Bin, b.dir, b.redisURL, b.slack), "/slack/events", pending, "inbox"},
	}
	if !b.Bolt {
		return list, nil
	}
	if _, err := os.Stat(filepath.Join(b.Root, "node_modules", "@slack", "bolt")); errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("no Bolt is installed: use `make bench-ingress`, or leave it out with -bolt=false")
	}
	bolt := door.Program{
		Name: boltName, Args: []string{"node", filepath.Join(b.Root, "bolt.mjs")}, Env: b.slack.Env(), Dir: b.dir,
		Redis: b.redisURL,
	}
	return append(list, contender{bolt, "/slack/events", "bull:slack:wait", ""}), nil
}

// server is a running contender.
type server struct {
	contender
	*door.Server
}

// serve starts a contender and returns when it listens.
func (b *bench) serve(ctx context.Context, c contender) (*server, error) {
	s, err := c.Serve(ctx)
	if err != nil {
		return nil, err
	}
	return &server{c, s}, nil
}

// events generates requests for a contender.
func (b *bench) events(s *server, n int) [][]byte { return b.slack.Requests(s.Addr, s.path, n) }

// waiting returns the length of its queue once that has all events, or what it is after a while without a change: a
// front door answers when an event is stored, and interprets it afterwards.
func (s *server) waiting(ctx context.Context, r *redis.Client, all int) (int64, error) {
	return s.within(ctx, r, all, patience)
}

// within is waiting with another time without a change.
func (s *server) within(ctx context.Context, r *redis.Client, all int, patience time.Duration) (int64, error) {
	last, changed := int64(-1), time.Now()
	for {
		n, err := r.LLen(ctx, s.list).Result()
		if err != nil {
			return 0, fmt.Errorf("look at the queue of %s: %w", s.Name, err)
		}
		if n != last {
			last, changed = n, time.Now()
		}
		if n >= int64(all) || time.Since(changed) > patience {
			return n, nil
		}
		if !door.Until(ctx, time.Now().Add(10*time.Millisecond)) {
			return 0, context.Cause(ctx)
		}
	}
}
