package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
)

// asking is how long the question stands that the first Ctrl-C brings: a second one that comes later shall not be taken for its answer.
const asking = 10 * time.Second

// stopping is what Ctrl-C has come to.
type stopping struct {
	asked     time.Time // when it was asked about; zero: never
	question  string
	enter     <-chan struct{} // somebody has pressed Enter, which is asked for together with the question; nil: nobody reads it
	cancelled bool            // the task was cancelled from here
}

func (s *stopping) open(at time.Time) bool {
	return !s.asked.IsZero() && !s.cancelled && at.Sub(s.asked) < asking
}

// heed decides what a signal means; nil: to go on. On a terminal the first Ctrl-C asks, the second cancels the task and waits for its end, a
// third leaves. Without one there is nobody to ask, and any signal leaves; so does SIGTERM.
func (w *watch) heed(ctx context.Context, sig os.Signal) error {
	now := time.Now()
	switch {
	case sig == syscall.SIGTERM || !w.stderr.TTY() || w.stop.cancelled:
		return w.leave(leftBy(sig))
	case w.stop.open(now):
		w.cancel(ctx)
	default:
		w.ask(now)
	}
	return nil
}

// ask tells what Ctrl-C does: in the status line, as long as that counts, or in a line.
func (w *watch) ask(now time.Time) {
	w.stop.asked = now
	w.stop.question = "Ctrl-C again cancels the task"
	if w.stdin.tty && w.stop.enter == nil {
		w.stop.enter = w.stdin.line()
	}
	if w.stop.enter != nil {
		w.stop.question += " · Enter leaves, and it goes on"
	}
	if !w.screen.Live() || w.raw {
		w.screen.Note(w.stop.question)
	}
}

// cancel stops the task. What it comes to is told as any other ending is.
func (w *watch) cancel(ctx context.Context) {
	var v task
	if _, err := w.door.call(ctx, http.MethodPost, "/api/tasks/"+w.id+"/cancel", &v); err != nil {
		w.screen.Note(w.stderr.Paint(term.Red, "cancel task: "+err.Error()))
		w.stop.asked = time.Time{}
		return
	}
	w.stop.cancelled = true
	w.screen.Note(w.stderr.Paint(term.Yellow, "cancelling the task; Ctrl-C again leaves at once"))
}

// keyboard is where a person types.
type keyboard struct {
	io.Reader
	tty bool
}

// line waits for Enter on a goroutine that ends with the process: a terminal cannot be told that nobody reads it any more.
func (k keyboard) line() <-chan struct{} {
	pressed := make(chan struct{})
	go func() {
		defer close(pressed)
		_, _ = bufio.NewReader(k).ReadString('\n') // Ctrl-D will do as well
	}()
	return pressed
}
