package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/errand-fleet/errand/tasks"
)

// command is one of the client's. prepare declares its flags and gives what it does with the arguments behind them.
type command struct {
	name, args, about string
	prepare           func(c *terminal, flags *flag.FlagSet) func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"chat", "[-repo o/r | -dir PATH] [-thread T] [-agent A] [-model M] [-follow] PROMPT…", "ask for something", chatCommand},
		{"list", "[-state S] [-json]", "show the newest tasks", listCommand},
		{"show", "ID", "show one task and its answer", showCommand},
		{"logs", "[-f] ID", "print the log of a task, or follow what it does", logsCommand},
		{"answer", "[-question KEY] ID WORDS…", "answer what a task asks", answerCommand},
		{"cancel", "ID", "stop a task", cancelCommand},
		{"retry", "ID", "let a task that has ended run again", retryCommand},
		{"costs", "[-by GROUP,…] [-days N | -from DAY -to DAY] [-person P] [-repo o/r] [-json | -csv]", "show what runs have cost", costsCommand},
		{"doctor", "[-json]", "look whether the fleet can do its work, and say what is wrong", doctorCommand},
	}
}

// terminal is where a command speaks, and the front door it speaks to. One goroutine uses it.
type terminal struct {
	door           *door
	stdout, stderr io.Writer
}

var (
	errUsage = errors.New("usage") // the command was called wrongly; what is wrong has been said
	errSaid  = errors.New("said")  // the task did not go well, and that has been said
)

// client runs one command against the API of a front door and returns the exit code: 0, 1 when it did not work, 2 when it was
// called wrongly. Results go to stdout, everything about them to stderr.
func client(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return 2
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return code(c.run(ctx, args[1:], getenv, stdout, stderr), stderr)
		}
	}
	switch args[0] {
	case "init":
		return code(initialise(args[1:], getenv, stdout, stderr), stderr)
	case "help", "-h", "-help", "--help":
		usage(stdout)
		return 0
	}
	say(stderr, "enqueue: there is no command %q\n", args[0])
	usage(stderr)
	return 2
}

func (c command) run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		say(stderr, "usage: enqueue %s %s\n", c.name, c.args)
		flags.PrintDefaults()
	}
	t := &terminal{stdout: stdout, stderr: stderr}
	do := c.prepare(t, flags)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return errUsage
	}
	var err error
	if t.door, err = newDoor(getenv("ERRAND_HTTP_ADDR"), getenv("ERRAND_CONSOLE_TOKEN")); err != nil {
		return err
	}
	err = do(ctx, flags.Args())
	if errors.Is(err, errUsage) {
		flags.Usage()
	}
	return err
}

func code(err error, stderr io.Writer) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		return 2
	case !errors.Is(err, errSaid):
		say(stderr, "enqueue: %v\n", err)
	}
	return 1
}

func usage(w io.Writer) {
	say(w, "usage: enqueue COMMAND\n\n  serve\n    \tbe the front door: webhooks, API and console\n")
	for _, c := range commands() {
		say(w, "  %s %s\n    \t%s\n", c.name, c.args, c.about)
	}
	say(w, "  init slack [-name NAME] [-url https://HOST]\n    \tprint the manifest that makes a Slack app\n")
	say(w, "  init github -url https://HOST [-name NAME] [-org ORG]\n    \tprint the manifest that makes a GitHub App, and where to make it\n")
	say(w, "\nAll but serve and init talk to ERRAND_HTTP_ADDR (%s) with ERRAND_CONSOLE_TOKEN.\n", defaultAddr)
}

// say writes to a terminal. One that is gone is nobody to tell about it.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// oneID is for commands about one task.
func (t *terminal) oneID(args []string) (string, error) {
	switch {
	case len(args) != 1:
		return "", errUsage
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
	if t.Ending == nil {
		return t.State
	}
	return cmp.Or(string(t.Ending.Kind), t.State)
}
