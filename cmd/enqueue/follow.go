package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A follower that is cut off tries again so many times in a row, first after firstPause and then after twice as long each time:
// long enough for a server to be replaced.
const (
	attempts   = 8
	firstPause = 200 * time.Millisecond
)

// news is one thing that a follower hears.
type news struct {
	event agent.Event
	raw   string // as the server told it; empty: it told nothing, but is there
	end   *task  // the task has ended so; nothing follows
	away  bool   // the server is away, and is looked for
	err   error  // it stays away; nothing follows
}

// follower reads a task's events over as many connections as it takes. Which worker runs the task, and which front door tells of it, makes
// no difference. It is used by one goroutine.
type follower struct {
	door *door
	id   string
	tell func(news) bool // false: nobody listens any more

	from   string            // whose events are read: the task's own, or those of the one whose run has taken it up
	after  map[string]string // the last event that was read, by task
	failed int               // attempts in a row that brought nothing
}

// follow hears of a task, from its beginning, on a goroutine of its own. The last news has an end or an error, unless ctx ends before.
func (d *door) follow(ctx context.Context, id string) <-chan news {
	all := make(chan news)
	f := &follower{door: d, id: id, from: id, after: map[string]string{}, tell: func(n news) bool {
		select {
		case all <- n:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	go func() {
		defer close(all)
		if err := f.run(ctx); err != nil {
			f.tell(news{err: err})
		}
	}()
	return all
}

func (f *follower) run(ctx context.Context) error {
	for connected := false; ctx.Err() == nil; connected = true {
		from := f.from
		over, err := f.read(ctx)
		if e, ok := errors.AsType[*refused](err); ok && e.status < 500 || err != nil && !connected {
			return err
		}
		if over {
			return nil
		}
		if f.from != from {
			continue // to the events of another task
		}
		if f.failed++; f.failed > attempts {
			return errors.Join(errors.New("the server is gone; the task may go on"), err)
		}
		if !f.tell(news{away: true}) {
			return nil
		}
		select {
		case <-time.After(f.door.pause << (f.failed - 1)):
		case <-ctx.Done():
		}
	}
	return nil
}

// read tells the events of one connection; over says that nothing more is to be told.
func (f *follower) read(ctx context.Context) (over bool, err error) {
	resp, err := f.door.open(ctx, http.MethodGet, "/api/tasks/"+f.from+"/events", nil, "Last-Event-ID", f.after[f.from])
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if f.failed > 0 && !f.tell(news{}) {
		return true, nil
	}
	for e := range stream(resp.Body) {
		f.failed = 0
		if e.data == "" {
			continue
		}
		if e.id != "" {
			f.after[f.from] = e.id
		}
		if e.name == "end" {
			return f.end(e.data)
		}
		n := news{raw: e.data}
		if err := json.Unmarshal([]byte(e.data), &n.event); err != nil {
			return false, fmt.Errorf("read event: %w", err)
		}
		if !f.tell(n) {
			return true, nil
		}
		if into := n.event.ToolID; n.event.Kind == tasks.Absorbed && n.event.Tool == "" && f.from == f.id && tasks.ValidID(into) {
			f.from, f.after[into] = into, before(e.id) // from here on, all that happens is told there
			return false, nil
		}
	}
	return false, nil
}

// end is that of the task, or of the one whose run it was in: then its own events tell the rest, which is its end, or that it waits again.
func (f *follower) end(data string) (over bool, err error) {
	if f.from != f.id {
		f.from = f.id
		return false, nil
	}
	n := news{raw: data, end: &task{}}
	if err := json.Unmarshal([]byte(data), n.end); err != nil {
		return false, fmt.Errorf("read end: %w", err)
	}
	f.tell(n)
	return true, nil
}

// before is where to go on in another task's events to hear of all that came after one: IDs are Redis' milliseconds and a number within each,
// so what happened in the same one may have been before it.
func before(id string) string {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(ms, 10, 64)
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", n-1, uint64(math.MaxUint64))
}
