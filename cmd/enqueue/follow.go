package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// A follower reconnects up to maxAttempts times in a row, first after firstPause and then with doubled pauses: long
// enough for a server to be replaced.
const (
	maxAttempts = 8
	firstPause  = 200 * time.Millisecond
)

// update is a message from a follower.
type update struct {
	event        agent.Event
	raw          string // the event as JSON; empty if the server sent nothing
	end          *task  // the task has ended; the last update
	reconnecting bool
	err          error // reconnecting failed; the last update
}

// follower reads a task's events over as many connections as necessary. It does not matter which worker runs the task
// and which front door serves the events. It is not safe for concurrent use.
type follower struct {
	api  *apiClient
	id   string
	send func(update) bool // returns false if the receiver is gone

	from   string            // the task whose events are read: id, or the task that absorbed it
	after  map[string]string // the last event that was read, by task
	failed int               // failed attempts in a row
}

// follow sends a task's events from the beginning. The last update has an end or an error, unless ctx ends first.
func (c *apiClient) follow(ctx context.Context, id string) <-chan update {
	updates := make(chan update)
	f := &follower{api: c, id: id, from: id, after: map[string]string{}, send: func(n update) bool {
		select {
		case updates <- n:
			return true
		case <-ctx.Done():
			return false
		}
	}}
	go func() {
		defer close(updates)
		if err := f.run(ctx); err != nil {
			f.send(update{err: err})
		}
	}()
	return updates
}

func (f *follower) run(ctx context.Context) error {
	for connected := false; ctx.Err() == nil; connected = true {
		from := f.from
		done, err := f.readEvents(ctx)
		if e, ok := errors.AsType[*apiError](err); ok && e.status < 500 || err != nil && !connected {
			return err
		}
		if done {
			return nil
		}
		if f.from != from {
			continue
		}
		if f.failed++; f.failed > maxAttempts {
			return errors.Join(errors.New("lost the connection to the server; the task may continue"), err)
		}
		if !f.send(update{reconnecting: true}) {
			return nil
		}
		select {
		case <-time.After(f.api.pause << (f.failed - 1)):
		case <-ctx.Done():
		}
	}
	return nil
}

// readEvents reads one connection. It returns true when no more updates will follow.
func (f *follower) readEvents(ctx context.Context) (done bool, err error) {
	resp, err := f.api.open(ctx, "GET /api/tasks/"+f.from+"/events", nil, "Last-Event-ID", f.after[f.from])
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if f.failed > 0 && !f.send(update{}) {
		return true, nil
	}
	for e := range serverEvents(resp.Body) {
		f.failed = 0
		if e.data == "" {
			continue
		}
		if e.id != "" {
			f.after[f.from] = e.id
		}
		if e.name == "end" {
			return f.readEnd(e.data)
		}
		n := update{raw: e.data}
		if err := json.Unmarshal([]byte(e.data), &n.event); err != nil {
			return false, fmt.Errorf("read event: %w", err)
		}
		if !f.send(n) {
			return true, nil
		}
		if into := n.event.ToolID; n.event.Kind == tasks.Absorbed && n.event.Tool == "" && f.from == f.id && tasks.ValidID(into) {
			f.from, f.after[into] = into, beforeMillisecond(e.id) // the task was absorbed: its events are among those of the other task
			return false, nil
		}
	}
	return false, nil
}

// readEnd handles the end of the task. When the absorbing task ends, the task's own events have its end or say that it
// waits again.
func (f *follower) readEnd(data string) (done bool, err error) {
	if f.from != f.id {
		f.from = f.id
		return false, nil
	}
	n := update{raw: data, end: &task{}}
	if err := json.Unmarshal([]byte(data), n.end); err != nil {
		return false, fmt.Errorf("read end: %w", err)
	}
	f.send(n)
	return true, nil
}

// beforeMillisecond returns the last ID before the millisecond of an event. IDs are Redis' milliseconds and a number;
// another task's events of the same millisecond may have smaller numbers.
func beforeMillisecond(id string) string {
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(ms, 10, 64)
	if err != nil || n == 0 {
		return ""
	}
	return fmt.Sprintf("%d-%d", n-1, uint64(math.MaxUint64))
}

const logsJSON = "JSON: the CLI's lines, or with -f one event per line and the end"

func logsCommand(t *terminal, flags *flag.FlagSet) runFunc {
	follow := flags.Bool("f", false, "follow the task from its beginning to its end")
	return func(ctx context.Context, args []string) error {
		id, err := oneID(args)
		switch {
		case err != nil:
			return err
		case *follow:
			w := t.newWatch(id, t.stdout)
			w.printer.timestamps = true
			return w.run(ctx, "")
		case t.raw:
			return t.copyResponse(ctx, "/api/tasks/"+id+"/log?raw=1", t.escapeJSON)
		}
		return t.copyResponse(ctx, "/api/tasks/"+id+"/log", legible.Text)
	}
}
