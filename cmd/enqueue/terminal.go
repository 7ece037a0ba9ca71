package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

// world is the environment of a command. Tests replace it.
type world struct {
	getenv         func(string) string
	dir            string // the current directory, which may have a .env; empty: that of the process
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	notify         func() (<-chan os.Signal, func()) // catches signals that end it until its stop is called; may be nil
	patience       time.Duration                     // default: patience
	pause          time.Duration                     // default: firstPause
}

// notifySignals is the notify function of the real process.
func notifySignals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 3)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// terminal is what a command reads from and prints to, and the API it calls. It is not safe for concurrent use.
type terminal struct {
	world
	api            *apiClient
	raw            bool // --json: print the server's JSON
	begun          bool // the flags and arguments of the command are right
	stdin          keyboard
	lines          *bufio.Reader // of stdin, for the questions of a guide; nil: none was read
	stdout, stderr *term.Out
}

func newTerminal(w world) *terminal {
	w.patience = cmp.Or(w.patience, patience)
	t := &terminal{
		world: w, stdin: keyboard{Reader: w.stdin}, stdout: term.NewOut(w.stdout, w.getenv),
		stderr: term.NewOut(w.stderr, w.getenv),
	}
	if f, ok := w.stdin.(*os.File); ok {
		t.stdin.tty = term.IsTerminal(f)
	}
	return t
}

// writeErr returns an error if results could not be written, for example because the disk is full.
func (t *terminal) writeErr() error {
	if err := t.stdout.Err(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

// printJSON prints JSON.
func (t *terminal) printJSON(text []byte) error {
	if _, err := io.WriteString(t.stdout, t.escapeJSON(string(text))); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// escapeJSON escapes control sequences in JSON that is printed on a terminal.
func (t *terminal) escapeJSON(text string) string {
	if t.stdout.TTY() {
		return display.JSON(text)
	}
	return text
}

// copyResponse prints the body of a GET request without a time limit. It passes each line through sanitize.
func (t *terminal) copyResponse(ctx context.Context, path string, sanitize func(string) string) error {
	resp, err := t.api.open(ctx, "GET "+path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for {
		line, err := in.ReadString('\n')
		if _, err := io.WriteString(t.stdout, sanitize(line)); err != nil {
			return fmt.Errorf("print response: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read response: %w", err)
		}
	}
}

// printf writes to a terminal and ignores errors: a [term.Out] remembers them.
func printf(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// keyboard is standard input.
type keyboard struct {
	io.Reader
	tty bool
}

// waitEnter returns a channel that is closed when Enter or Ctrl-D is pressed. Its goroutine ends with the process,
// because reading a terminal cannot be interrupted.
func (k keyboard) waitEnter() <-chan struct{} {
	pressed := make(chan struct{})
	go func() {
		defer close(pressed)
		_, _ = bufio.NewReader(k).ReadString('\n')
	}()
	return pressed
}

// exit is an exit code, as an error whose message was already printed. docs/cli.md lists the codes.
type exit int

const (
	exitFailed      exit = 1 // the command could not do its work
	exitUsage       exit = 2 // wrong flags or arguments
	exitTaskFailed  exit = 3 // the task failed or was lost
	exitTaskLimit   exit = 4 // the task timed out or stalled
	exitTaskStopped exit = 5 // the task was cancelled, taken over, withdrawn or superseded
	exitTaskRefused exit = 6
	exitInterrupted exit = 130
	exitTerminated  exit = 143
)

func (e exit) Error() string { return fmt.Sprintf("exit with %d", int(e)) }

// usageError is an error in the command's flags or arguments.
type usageError struct{ error }

// exitForEnding returns the exit code for a task that was followed to its end, or nil if it was answered.
func exitForEnding(kind string) error {
	switch kind {
	case "answered":
		return nil
	case "timed_out", "stalled":
		return exitTaskLimit
	case "cancelled", "taken", "withdrawn", "superseded":
		return exitTaskStopped
	case "refused":
		return exitTaskRefused
	}
	return exitTaskFailed
}

func exitForSignal(sig os.Signal) exit {
	if sig == os.Interrupt {
		return exitInterrupted
	}
	return exitTerminated
}

// exitCode returns the exit code for the error of a command, and prints the error, unless it was already printed.
func exitCode(command string, err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[exit](err); ok {
		return int(e)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		printf(stderr, "%s: %v; `%[1]s --help` says more\n", command, err)
		return int(exitUsage)
	}
	printf(stderr, "enqueue: %v\n", err)
	if r, ok := errors.AsType[*apiError](err); ok && r.status == http.StatusBadRequest { // a bad flag or argument
		return int(exitUsage)
	}
	return int(exitFailed)
}
