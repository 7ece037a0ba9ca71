package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

// patience is how long a task may wait before the watcher asks why, and how often it asks again.
const patience = 4 * time.Second

// cancelWindow is how long after the first Ctrl-C a second one cancels the task.
const cancelWindow = 10 * time.Second

// watch follows a task to its end, prints what happens, and handles Ctrl-C. Its fields belong to the goroutine of run.
type watch struct {
	*terminal
	id           string // as a part of a path
	name         string // for people
	printer      eventPrinter
	screen       *term.Screen
	progress     progress
	reconnecting bool

	askedAt   time.Time // of the first Ctrl-C
	question  string
	enter     <-chan struct{} // closed when Enter is pressed; nil until the first Ctrl-C
	cancelled bool            // this command cancelled the task
}

// newWatch returns a watch that prints the answer's text to stdout, lines about the run to side, and the status line to
// stderr.
func (t *terminal) newWatch(id, name string, side *term.Out) *watch {
	if t.raw {
		side = t.stderr
	}
	w := &watch{
		terminal: t, id: id, name: name, screen: term.NewScreen(t.stdout, side, t.stderr),
		progress: progress{submitted: time.Now()},
	}
	w.printer = eventPrinter{screen: w.screen, side: side, task: name}
	return w
}

// run prints the headline, if any, and watches until the task ends or the user leaves. It returns the exit code as an
// error.
func (w *watch) run(ctx context.Context, headline string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.screen.Status("")
	var signals <-chan os.Signal
	if w.notify != nil {
		var stop func()
		signals, stop = w.notify()
		defer stop()
	}
	if headline != "" { // after signals are caught: the reader may press Ctrl-C
		printf(w.stderr, "%s\n", w.stderr.Paint(term.Dim, display.Line(headline)))
	}
	updates := w.api.follow(ctx, w.id)
	waiting, started := context.WithCancel(ctx)
	defer started()
	reasons := w.askWhy(waiting)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		w.refresh(time.Now())
		select {
		case n, more := <-updates:
			if !more { // ctx has ended
				return w.leave(exitInterrupted)
			}
			if done, err := w.update(n); done {
				return err
			}
			if !w.progress.started.IsZero() { // from now on the events say why it waits
				started()
				reasons = nil
			}
			if err := w.writeErr(); err != nil {
				return fmt.Errorf("%w; the task continues: `enqueue logs -f %s`", err, w.name)
			}
		case sig := <-signals:
			if err := w.onSignal(ctx, sig); err != nil {
				return err
			}
		case <-w.enter:
			return w.leave(exitInterrupted)
		case why := <-reasons:
			w.screen.Note(w.stderr.Paint(term.Yellow, "! waiting: "+display.Line(why)))
		case <-tick.C:
		}
	}
}

// update prints an update.
func (w *watch) update(n update) (done bool, err error) {
	w.reconnecting = n.reconnecting
	switch {
	case n.err != nil:
		w.screen.Status("")
		w.screen.Newline()
		if e, ok := errors.AsType[*apiError](n.err); ok && e.status == http.StatusNotFound {
			return true, n.err
		}
		return true, fmt.Errorf("%w; `enqueue logs -f %s` follows it again", n.err, w.name)
	case n.reconnecting, n.raw == "":
	case w.raw:
		if err := w.printJSON([]byte(n.raw + "\n")); err != nil {
			return true, err
		}
		w.progress.update(n.event)
	case n.end == nil:
		w.progress.update(n.event)
		w.printer.event(n.event)
	}
	if n.end == nil {
		return false, nil
	}
	if !w.raw {
		w.printer.end(*n.end)
	}
	if n.end.Ending == nil {
		return true, errors.New("the task has ended, but the server sent no ending")
	}
	return true, exitForEnding(n.end.Ending.Kind)
}

// refresh sets the status line.
func (w *watch) refresh(now time.Time) {
	if w.raw || !w.screen.Live() {
		return
	}
	line := w.progress.line(now)
	switch {
	case w.cancelPending(now):
		line = w.question
	case w.reconnecting:
		line += " · reconnecting"
	case w.cancelled:
		line += " · cancelling"
	}
	w.screen.Status("  " + line)
}

// askWhy sends why the task waits, each time that the reason changes, until ctx ends.
func (w *watch) askWhy(ctx context.Context) <-chan string {
	reasons := make(chan string)
	if w.raw {
		return reasons
	}
	go func() {
		tick := time.NewTicker(w.patience)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			var v task
			_, err := w.api.call(ctx, "GET /api/tasks/"+w.id, nil, &v)
			if err != nil || v.State != "waiting" || v.Why == last {
				continue
			}
			last = v.Why
			select {
			case reasons <- last:
			case <-ctx.Done():
				return
			}
		}
	}()
	return reasons
}

// onSignal handles a signal and returns an exit code to leave with. On a terminal the first Ctrl-C asks, the second
// cancels the task and waits for its end, a third leaves. Without a terminal, and for other signals, the command leaves
// at once.
func (w *watch) onSignal(ctx context.Context, sig os.Signal) error {
	now := time.Now()
	switch {
	case sig != os.Interrupt || !w.stderr.TTY() || w.cancelled:
		return w.leave(exitForSignal(sig))
	case w.cancelPending(now):
		w.cancel(ctx)
	default:
		w.askCancel(now)
	}
	return nil
}

// cancelPending reports whether another Ctrl-C cancels the task.
func (w *watch) cancelPending(now time.Time) bool {
	return !w.askedAt.IsZero() && !w.cancelled && now.Sub(w.askedAt) < cancelWindow
}

// askCancel shows what Ctrl-C does, in the status line if there is one.
func (w *watch) askCancel(now time.Time) {
	w.askedAt = now
	w.question = "Ctrl-C again cancels the task"
	if w.stdin.tty && w.enter == nil {
		w.enter = w.stdin.waitEnter()
	}
	if w.enter != nil {
		w.question += " · Enter leaves it running"
	}
	if !w.screen.Live() || w.raw {
		w.screen.Note(w.question)
	} else {
		w.screen.Newline() // there is no status line beside an incomplete line of text
	}
}

// cancel cancels the task. Its ending arrives as an update.
func (w *watch) cancel(ctx context.Context) {
	var v task
	if _, err := w.api.call(ctx, "POST /api/tasks/"+w.id+"/cancel", nil, &v); err != nil {
		w.screen.Note(w.stderr.Paint(term.Red, "cancel task: "+err.Error()))
		w.askedAt = time.Time{}
		return
	}
	w.cancelled = true
	w.screen.Note(w.stderr.Paint(term.Yellow, "cancelling the task; Ctrl-C again exits at once"))
}

// leave stops watching and prints how to continue.
func (w *watch) leave(code exit) error {
	w.screen.Status("")
	w.screen.Newline()
	if w.cancelled {
		printf(w.stderr, "left; the task is being cancelled: `enqueue show %s` shows its ending\n", w.name)
	} else {
		printf(w.stderr,
			"left; the task continues: `enqueue logs -f %[1]s` follows it, `enqueue cancel %[1]s` cancels it\n", w.name)
	}
	return code
}

// A follower reconnects up to maxAttempts times in a row, first after firstPause and then with doubled pauses: long
// enough for a server to be replaced.
const (
	maxAttempts = 8
	firstPause  = 200 * time.Millisecond
)

// update is a message from a follower.
type update struct {
	event        event
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
		if into := n.event.ToolID; n.event.Kind == "absorbed" && n.event.Tool == "" && f.from == f.id && into != "" {
			into = url.PathEscape(into)
			f.from, f.after[into] = into, beforeMillisecond(e.id) // absorbed: the other task has the events
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

func logsCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "logs ID", Short: "Print or follow the log of a task",
		Annotations: map[string]string{"json": "JSON: the CLI's lines, or with -f one event per line and the end"},
	}
	follow := c.Flags().BoolP("follow", "f", false, "follow the task from its beginning to its end")
	return t.aboutTask(c, func(ctx context.Context, id string, _ []string) error {
		switch {
		case *follow:
			w := t.newWatch(id, id, t.stdout)
			w.printer.timestamps = true
			return w.run(ctx, "")
		case t.raw:
			return t.copyResponse(ctx, "/api/tasks/"+id+"/log?raw=1", t.escapeJSON)
		}
		return t.copyResponse(ctx, "/api/tasks/"+id+"/log", display.Text)
	})
}
