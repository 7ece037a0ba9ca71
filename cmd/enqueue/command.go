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
	"strconv"
	"strings"
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

func usage(w io.Writer) {
	say(w, "Ask a fleet of errand for something, and see what becomes of it.\n\nusage: enqueue COMMAND [flags] [arguments]\n\n")
	say(w, "  %-8s %s\n", "serve", "be the front door: webhooks, API and console")
	for _, c := range commands() {
		say(w, "  %-8s %s\n", c.name, c.about)
	}
	say(w, "\n`enqueue COMMAND -h` tells more about one.\n\n")
	say(w, "environment:\n  ERRAND_HTTP_ADDR       the front door, host:port or a URL; default %s\n", defaultAddr)
	say(w, "  ERRAND_CONSOLE_TOKEN   opens it; `worker -standalone` prints it when it starts\n  NO_COLOR               no colours\n")
	say(w, "\nexit codes:\n  0 done, or answered   1 could not be done   2 called wrongly\n")
	say(w, "  of a task that was followed: 3 failed   4 timed out   5 cancelled   6 refused\n  130 left by Ctrl-C, 143 by SIGTERM: the task goes on\n")
}

// help tells about one command.
func (c command) help(w io.Writer, flags *flag.FlagSet) {
	say(w, "usage: enqueue %s\n\n%s.\n", strings.TrimSpace(c.name+" "+c.args), strings.ToUpper(c.about[:1])+c.about[1:])
	if c.more != "" {
		say(w, "%s\n", strings.TrimRight(c.more, "\n"))
	}
	list(w, flags)
}

// list tells the flags, each in a line.
func list(w io.Writer, flags *flag.FlagSet) {
	var names []string
	width := 0
	about := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) {
		value, words := flag.UnquoteUsage(f)
		name := strings.TrimSpace("-" + f.Name + " " + value)
		names, about[name], width = append(names, name), words, max(width, len(name))
	})
	if len(names) == 0 {
		return
	}
	say(w, "\nflags:\n")
	for _, name := range names {
		say(w, "  %-*s  %s\n", width, name, about[name])
	}
}

// parse takes flags before, between and behind the arguments; all behind -- are arguments.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	var rest []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, explain(err)
		}
		left := flags.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
	return rest, nil
}

// numberFlag declares a flag that takes a number of at least 1 and gives it as text, empty when it is not set.
func numberFlag(flags *flag.FlagSet, name, about string) *string {
	value := new(string)
	flags.Func(name, about, func(text string) error {
		if n, err := strconv.Atoi(text); err != nil || n < 1 {
			return errors.New("write a number from 1 on")
		}
		*value = text
		return nil
	})
	return value
}

// dayFlag is the same for a day.
func dayFlag(flags *flag.FlagSet, name, about string) *string {
	value := new(string)
	flags.Func(name, about, func(text string) error {
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return errors.New("write a day like 2026-01-31")
		}
		*value = text
		return nil
	})
	return value
}

func explain(err error) error {
	if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: "); unknown {
		return fmt.Errorf("there is no flag %s (put -- before words that begin with a dash)", name)
	}
	return err
}

// meant guesses which command somebody wanted: one that differs in a letter, or begins with what was typed.
func meant(name string) string {
	for _, c := range append(commands(), command{name: "serve"}) {
		if len(name) > 1 && (strings.HasPrefix(c.name, name) || strings.HasPrefix(name, c.name) || near(c.name, name)) {
			return fmt.Sprintf(", did you mean %s?", c.name)
		}
	}
	return ""
}

// near reports whether two words differ in at most one place: a letter too many, too few, another, or two that have changed places.
func near(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	switch rest := a[i:]; {
	case len(a) == len(b):
		return len(rest) == 0 || rest[1:] == b[i+1:] || len(rest) > 1 && rest[:2] == b[i+1:i+2]+b[i:i+1] && rest[2:] == b[i+2:]
	case len(a) == len(b)+1:
		return rest[1:] == b[i:]
	}
	return false
}
