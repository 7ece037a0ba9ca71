package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// command is one of the client's. prepare declares its flags and gives what it does with the arguments.
type command struct {
	name, args, about string
	more              string // what else there is to know about it
	alone             bool   // it talks to no front door
	prepare           func(c *terminal, flags *flag.FlagSet) func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{name: "chat", args: "[-follow] [-repo o/r | -dir PATH] PROMPT…", about: "ask for something", more: chatHelp, prepare: chatCommand},
		{name: "list", args: "[filters]", about: "show tasks, the newest first", prepare: listCommand},
		{name: "show", args: "ID", about: "show one task and its answer", prepare: showCommand},
		{name: "logs", args: "[-f] ID", about: "print the log of a task, or follow what it does", more: logsHelp, prepare: logsCommand},
		{name: "answer", args: "[-question KEY] ID WORDS…", about: "answer what a task asks", prepare: answerCommand},
		{name: "cancel", args: "ID", about: "stop a task", prepare: changeCommand("cancel")},
		{name: "retry", args: "ID", about: "let a task that has ended run again", prepare: changeCommand("retry")},
		{name: "costs", args: "[filters]", about: "show what runs have cost", prepare: costsCommand},
		{name: "doctor", args: "", about: "look whether the fleet can do its work", more: doctorHelp, prepare: doctorCommand},
		{name: "init", args: "[slack | github]", about: "write .env and errand.yaml, or print what sets a service up", more: initHelp, alone: true, prepare: initCommand},
	}
}

// world is what a command finds around it.
type world struct {
	getenv         func(string) string
	environ        []string // all of it
	stdin          io.Reader
	stdout, stderr io.Writer
	notify         func() (<-chan os.Signal, func()) // catches Ctrl-C and SIGTERM, and stops that; nil: nobody sends them
	patience       time.Duration                     // 0: patience
	pause          time.Duration                     // 0: firstPause
	process        bool                              // the process is this program's own
}

// signals are those of this process.
func signals() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 3)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// terminal is where a command speaks, and the front door it speaks to. One goroutine uses it.
type terminal struct {
	world
	door           *door
	stdin          keyboard
	stdout, stderr *term.Out
}

func newTerminal(w world) *terminal {
	w.patience = cmp.Or(w.patience, patience)
	t := &terminal{world: w, stdin: keyboard{Reader: w.stdin}, stdout: term.NewOut(w.stdout, w.getenv), stderr: term.NewOut(w.stderr, w.getenv)}
	if f, ok := w.stdin.(*os.File); ok {
		t.stdin.tty = term.IsTerminal(f)
	}
	return t
}

// client runs one command and returns the exit code. Results go to stdout, everything about them to stderr.
func client(ctx context.Context, args []string, w world) int {
	if len(args) == 0 {
		usage(w.stderr)
		return int(misused)
	}
	name, rest := args[0], args[1:]
	switch name {
	case "help", "-h", "-help", "--help":
		if len(rest) == 0 {
			usage(w.stdout)
			return 0
		}
		name, rest = rest[0], []string{"-h"}
	}
	if name == "serve" { // asked about
		say(w.stdout, "usage: enqueue serve\n\nBe the front door: take webhooks, serve API and console. Settings are in the environment (.env.example).\n")
		return 0
	}
	for _, c := range commands() {
		if c.name == name {
			return code(c.run(ctx, rest, newTerminal(w)), w.stderr)
		}
	}
	say(w.stderr, "enqueue: there is no command %q%s `enqueue help` lists them\n", name, cmp.Or(meant(name), ";"))
	return int(misused)
}

func (c command) run(ctx context.Context, args []string, t *terminal) error {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	do := c.prepare(t, flags)
	args, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(t.stdout, flags)
		return t.lost()
	case err != nil:
		say(t.stderr, "enqueue %s: %v; `enqueue %[1]s -h` lists the flags\n", c.name, err)
		return misused
	}
	for _, p := range config.Unknown(t.environ) {
		say(t.stderr, "enqueue: warning: %v\n", p)
	}
	if !c.alone {
		if t.door, err = newDoor(t.getenv("ERRAND_HTTP_ADDR"), t.getenv("ERRAND_CONSOLE_TOKEN")); err != nil {
			return err
		}
		t.door.pause = cmp.Or(t.pause, t.door.pause)
	}
	err = do(ctx, args)
	switch {
	case errors.Is(err, misused):
		c.help(t.stderr, flags)
	case err == nil:
		return t.lost()
	}
	return err
}

// lost is the error of what could not be written to where results go: a full disk, say. A pipe that nobody reads any more ends the process.
func (t *terminal) lost() error {
	if err := t.stdout.Err(); err != nil {
		return fmt.Errorf("print results: %w", err)
	}
	return nil
}

// code is the exit code of an error, which is told if it was not.
func code(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[exit](err); ok {
		return int(e)
	}
	say(stderr, "enqueue: %v\n", err)
	if _, ok := errors.AsType[wrongUse](err); ok {
		return int(misused)
	}
	if r, ok := errors.AsType[*refused](err); ok && r.status == http.StatusBadRequest { // what a flag or an argument says
		return int(misused)
	}
	return int(failed)
}

// oneID is for commands about one task.
func oneID(args []string) (string, error) {
	switch {
	case len(args) != 1:
		return "", misused
	case !tasks.ValidID(args[0]):
		return "", fmt.Errorf("%q is not the ID of a task: `enqueue list` shows them", args[0])
	}
	return args[0], nil
}

// task is one as the API shows it.
type task struct {
	tasks.Status
	Title    string `json:"title"`
	Sentence string `json:"sentence"`
}

// state is in one word how it is or how it ended.
func (t task) state() string {
	switch {
	case t.Stopping():
		return "stopping"
	case t.Ending == nil:
		return t.State
	}
	return cmp.Or(string(t.Ending.Kind), t.State)
}
