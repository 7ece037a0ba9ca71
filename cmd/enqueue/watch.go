package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
)

// watch stays with a task until its end, prints what happens, and heeds Ctrl-C. Its fields belong to the goroutine of run.
type watch struct {
	*terminal
	id       string
	teller   teller
	screen   *term.Screen
	progress progress
	raw      bool // print the server's own words
	away     bool // the server is looked for
	stop     stopping
}

// newWatch prints text to stdout, all about it to side, and what concerns the person alone to stderr, the status line among it.
func (t *terminal) newWatch(id string, side *term.Out, raw bool) *watch {
	if raw {
		side = t.stderr
	}
	w := &watch{terminal: t, id: id, raw: raw, screen: term.NewScreen(t.stdout, side, t.stderr), progress: progress{asked: time.Now()}}
	w.teller = teller{screen: w.screen, side: side, id: id}
	return w
}

// run prints words, if any, and watches. It returns how the command exits: as the task has ended, or as it was left.
func (w *watch) run(ctx context.Context, words string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer w.screen.Status("")
	signals, ignore := w.signals()
	defer ignore()
	if words != "" { // after signals are caught: who reads this may press Ctrl-C
		say(w.stderr, "%s\n", w.stderr.Paint(term.Dim, legible.Line(words)))
	}
	all := w.door.follow(ctx, w.id)
	doubts := w.doubts(ctx)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		w.refresh(time.Now())
		select {
		case n, more := <-all:
			if !more { // ctx has ended
				return w.leave(interrupted)
			}
			if over, err := w.hear(n); over {
				return err
			}
			if err := w.lost(); err != nil { // nobody hears it
				return fmt.Errorf("%w; the task goes on: `enqueue logs -f %s`", err, w.id)
			}
		case sig := <-signals:
			if left := w.heed(ctx, sig); left != nil {
				return left
			}
		case <-w.stop.enter:
			return w.leave(interrupted)
		case why := <-doubts:
			w.doubt(why)
		case <-tick.C:
		}
	}
}

// hear prints news.
func (w *watch) hear(n news) (over bool, err error) {
	w.away = n.away
	switch {
	case n.err != nil:
		w.screen.Status("")
		w.screen.Newline()
		return true, fmt.Errorf("%w; `enqueue logs -f %s` goes on from here", n.err, w.id)
	case n.away, n.raw == "":
	case w.raw:
		if err := w.json([]byte(n.raw + "\n")); err != nil {
			return true, err
		}
		w.progress.note(n.event)
	case n.end == nil:
		w.progress.note(n.event)
		w.teller.tell(n.event)
	}
	if n.end == nil {
		return false, nil
	}
	if !w.raw {
		w.teller.end(*n.end)
	}
	if n.end.Ending == nil {
		return true, errors.New("the task has ended, but the server does not say how")
	}
	return true, endedAs(n.end.Ending.Kind)
}

// refresh sets the status line.
func (w *watch) refresh(at time.Time) {
	if w.raw || !w.screen.Live() {
		return
	}
	line := w.progress.line(at)
	switch {
	case w.stop.open(at):
		line = w.stop.question
	case w.away:
		line += " · looking for the server"
	case w.stop.cancelled:
		line += " · cancelling"
	}
	w.screen.Status("  " + line)
}

// patience is how long a task may wait before somebody who watches is told why.
const patience = 4 * time.Second

// doubts looks once, after a while, whether anybody could run a task.
func (w *watch) doubts(ctx context.Context) <-chan string {
	found := make(chan string, 1)
	if w.raw {
		return found
	}
	go func() {
		select {
		case <-time.After(w.patience):
		case <-ctx.Done():
			return
		}
		if _, f, err := w.door.health(ctx); err == nil && f.Problem != "" {
			found <- f.Problem
		}
	}()
	return found
}

func (w *watch) doubt(why string) {
	if w.progress.started.IsZero() {
		w.screen.Note(w.stderr.Paint(term.Yellow, "! it waits, because "+legible.Line(why)+"; `enqueue doctor` says what to do"))
	}
}

// leave stops watching, and says how to come back.
func (w *watch) leave(how exit) error {
	w.screen.Status("")
	w.screen.Newline()
	if w.stop.cancelled {
		say(w.stderr, "left; the task stops by itself: `enqueue show %s` tells what it came to\n", w.id)
	} else {
		say(w.stderr, "left; the task goes on: `enqueue logs -f %[1]s` follows it, `enqueue cancel %[1]s` stops it\n", w.id)
	}
	return how
}

// signals are those that this command is sent. They are caught as long as it watches.
func (w *watch) signals() (<-chan os.Signal, func()) {
	if w.notify == nil {
		return nil, func() {}
	}
	return w.notify()
}

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
