package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
)

// patience is how long a task may wait before the watcher checks the fleet for a reason.
const patience = 4 * time.Second

// cancelWindow is how long after the first Ctrl-C a second one cancels the task.
const cancelWindow = 10 * time.Second

// watch follows a task to its end, prints what happens, and handles Ctrl-C. Its fields belong to the goroutine of run.
type watch struct {
	*terminal
	id           string
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
func (t *terminal) newWatch(id string, side *term.Out) *watch {
	if t.raw {
		side = t.stderr
	}
	w := &watch{terminal: t, id: id, screen: term.NewScreen(t.stdout, side, t.stderr), progress: progress{submitted: time.Now()}}
	w.printer = eventPrinter{screen: w.screen, side: side, id: id}
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
		printf(w.stderr, "%s\n", w.stderr.Paint(term.Dim, legible.Line(headline)))
	}
	updates := w.api.follow(ctx, w.id)
	problem := w.checkFleet(ctx)
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
			if err := w.writeErr(); err != nil {
				return fmt.Errorf("%w; the task continues: `enqueue logs -f %s`", err, w.id)
			}
		case sig := <-signals:
			if err := w.onSignal(ctx, sig); err != nil {
				return err
			}
		case <-w.enter:
			return w.leave(exitInterrupted)
		case why := <-problem:
			if w.progress.started.IsZero() {
				w.screen.Note(w.stderr.Paint(term.Yellow, "! the task waits because "+legible.Line(why)+"; `enqueue doctor` shows what to do"))
			}
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
		return true, fmt.Errorf("%w; `enqueue logs -f %s` follows it again", n.err, w.id)
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

// checkFleet asks once, after a while, whether the fleet can run tasks, and sends the problem if not.
func (w *watch) checkFleet(ctx context.Context) <-chan string {
	problem := make(chan string, 1)
	if w.raw {
		return problem
	}
	go func() {
		select {
		case <-time.After(w.patience):
		case <-ctx.Done():
			return
		}
		if _, f, err := w.api.health(ctx); err == nil && f.Problem != "" {
			problem <- f.Problem
		}
	}()
	return problem
}

// onSignal handles a signal and returns an exit code to leave with. On a terminal the first Ctrl-C asks, the second
// cancels the task and waits for its end, a third leaves. Without a terminal, and for SIGTERM, the command leaves at
// once.
func (w *watch) onSignal(ctx context.Context, sig os.Signal) error {
	now := time.Now()
	switch {
	case sig == syscall.SIGTERM || !w.stderr.TTY() || w.cancelled:
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
	w.screen.Note(w.stderr.Paint(term.Yellow, "cancelling the task; Ctrl-C again leaves at once"))
}

// leave stops watching and prints how to continue.
func (w *watch) leave(code exit) error {
	w.screen.Status("")
	w.screen.Newline()
	if w.cancelled {
		printf(w.stderr, "left; the task is being cancelled: `enqueue show %s` shows its ending\n", w.id)
	} else {
		printf(w.stderr, "left; the task continues: `enqueue logs -f %[1]s` follows it, `enqueue cancel %[1]s` cancels it\n", w.id)
	}
	return code
}
