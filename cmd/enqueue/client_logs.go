package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
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

func logsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	follow := flags.Bool("f", false, "follow what the task does, from its beginning to its end")
	return func(ctx context.Context, args []string) error {
		id, err := t.oneID(args)
		if err != nil {
			return err
		}
		if *follow {
			return t.follow(ctx, id)
		}
		resp, err := t.door.open(ctx, http.MethodGet, "/api/tasks/"+id+"/log", nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return t.print(resp.Body)
	}
}

// print copies a log, line by line.
func (t *terminal) print(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if _, err := io.WriteString(t.stdout, plain(line)); err != nil {
			return fmt.Errorf("print log: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

// follower reads a task's events over as many connections as it takes.
type follower struct {
	*terminal
	id, after string
	out       printer
	failed    int // attempts in a row without a new event
}

func (t *terminal) follow(ctx context.Context, id string) error {
	f := &follower{terminal: t, id: id, out: printer{text: t.stdout, side: t.stdout}}
	for connected := false; ; connected = true {
		ended, err := f.read(ctx)
		if e, ok := errors.AsType[*refused](err); ok && e.status < 500 || err != nil && !connected {
			return err
		}
		if ended {
			return nil
		}
		if f.failed++; f.failed > attempts {
			return errors.Join(errors.New("the server is gone; the task may go on"), err)
		}
		select {
		case <-time.After(firstPause << (f.failed - 1)):
		case <-ctx.Done():
			return errors.New("no longer followed; the task goes on")
		}
	}
}

// read prints the events of one connection; ended says that the last one was among them.
func (f *follower) read(ctx context.Context) (ended bool, err error) {
	resp, err := f.door.open(ctx, http.MethodGet, "/api/tasks/"+f.id+"/events", nil, "Last-Event-ID", f.after)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	for e := range stream(resp.Body) {
		if e.id != "" {
			f.after, f.failed = e.id, 0
		}
		if e.name == "end" {
			var v task
			if err := json.Unmarshal([]byte(e.data), &v); err != nil {
				return false, fmt.Errorf("read end: %w", err)
			}
			f.out.line("%s", strings.TrimSpace("— "+v.state()+". "+v.Sentence))
			return true, nil
		}
		var event agent.Event
		if err := json.Unmarshal([]byte(e.data), &event); err != nil {
			return false, fmt.Errorf("read event: %w", err)
		}
		f.tell(event)
	}
	return false, nil
}

// tell prints an event. What the agent thinks and what its tools print is in the log.
func (f *follower) tell(e agent.Event) {
	at := e.Time.Local().Format(time.TimeOnly)
	switch e.Kind {
	case agent.Text:
		if e.Parent == "" {
			f.out.piece(e.Text)
		}
	case agent.ToolUse:
		f.out.line("%s · %s", at, e.Text)
	case agent.Started:
		f.out.line("%s — started, %s", at, e.Text)
	case agent.Notice:
		f.out.line("%s ! %s", at, e.Text)
	case tasks.Said:
		f.out.line("%s » %s", at, e.Text)
	case tasks.Asked:
		f.out.line("%s ? %s", at, e.Text)
	case tasks.Replied:
		f.out.line("%s ! %s", at, cmp.Or(e.Text, "nobody answered"))
	case agent.TurnEnd:
		f.out.newline()
	}
}
