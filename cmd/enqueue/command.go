package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// command is a command of the API's client.
type command struct {
	name, args, about string
	more              string // more help
	offline           bool   // the command calls no API
	prepare           prepareFunc
}

// prepareFunc declares a command's flags and returns the function that runs the command with its arguments.
type prepareFunc = func(*terminal, *flag.FlagSet) func(context.Context, []string) error

func commands() []command {
	return []command{
		{name: "chat", args: "[-follow] [-repo o/r | -dir PATH] PROMPT…", about: "submit a task", more: chatHelp, prepare: chatCommand},
		{name: "list", args: "[filters]", about: "list tasks, newest first", prepare: listCommand},
		{name: "show", args: "ID", about: "show a task and its answer", prepare: showCommand},
		{name: "logs", args: "[-f] ID", about: "print or follow the log of a task", more: logsHelp, prepare: logsCommand},
		{name: "answer", args: "[-question KEY] ID WORDS…", about: "answer a task's question", prepare: answerCommand},
		{name: "cancel", args: "ID", about: "cancel a task", prepare: changeCommand("cancel")},
		{name: "retry", args: "ID", about: "run a task again that has ended", prepare: changeCommand("retry")},
		{name: "costs", args: "[filters]", about: "show the costs of runs", prepare: costsCommand},
		{name: "doctor", args: "", about: "check whether the fleet works", more: doctorHelp, prepare: doctorCommand},
		{name: "init", args: "[slack | github]", about: "write .env and errand.yaml, or print an app manifest", more: initHelp, offline: true, prepare: initCommand},
	}
}

// client runs one command and returns the exit code. Results go to stdout, everything else to stderr.
func client(ctx context.Context, args []string, w world) int {
	if len(args) == 0 {
		usage(w.stderr)
		return int(exitUsage)
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
	if name == "serve" { // with help
		printf(w.stdout, "usage: enqueue serve\n\nServe webhooks, API and console. Configure it with environment variables (.env.example).\n")
		return 0
	}
	for _, c := range commands() {
		if c.name == name {
			return exitCode(c.run(ctx, rest, newTerminal(w)), w.stderr)
		}
	}
	printf(w.stderr, "enqueue: unknown command %q%s `enqueue help` lists the commands\n", name, cmp.Or(suggest(name), ";"))
	return int(exitUsage)
}

func (c command) run(ctx context.Context, args []string, t *terminal) error {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	do := c.prepare(t, flags)
	args, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(t.stdout, flags)
		return t.writeErr()
	case err != nil:
		printf(t.stderr, "enqueue %s: %v; `enqueue %[1]s -h` lists the flags\n", c.name, err)
		return exitUsage
	}
	for _, p := range config.Unknown(t.environ) {
		printf(t.stderr, "enqueue: warning: %v\n", p)
	}
	if !c.offline {
		if t.api, err = newAPIClient(t.getenv("ERRAND_HTTP_ADDR"), t.getenv("ERRAND_CONSOLE_TOKEN")); err != nil {
			return err
		}
		t.api.pause = cmp.Or(t.pause, t.api.pause)
	}
	err = do(ctx, args)
	switch {
	case errors.Is(err, exitUsage):
		c.help(t.stderr, flags)
	case err == nil:
		return t.writeErr()
	}
	return err
}

// oneID returns the task ID that is the command's only argument.
func oneID(args []string) (string, error) {
	switch {
	case len(args) != 1:
		return "", exitUsage
	case !tasks.ValidID(args[0]):
		return "", fmt.Errorf("%q is not a task ID: `enqueue list` shows them", args[0])
	}
	return args[0], nil
}

func usage(w io.Writer) {
	printf(w, "Submit tasks to an errand fleet and follow them.\n\nusage: enqueue COMMAND [flags] [arguments]\n\n")
	printf(w, "  %-8s %s\n", "serve", "serve webhooks, API and console")
	for _, c := range commands() {
		printf(w, "  %-8s %s\n", c.name, c.about)
	}
	printf(w, "\n`enqueue COMMAND -h` shows help for a command.\n\n")
	printf(w, "environment:\n  ERRAND_HTTP_ADDR       the server, host:port or a URL; default %s\n", defaultAddr)
	printf(w, "  ERRAND_CONSOLE_TOKEN   its token; `worker -standalone` prints it at start\n  NO_COLOR               no colours\n")
	printf(w, "\nexit codes:\n  0 success   1 failure   2 usage error\n")
	printf(w, "  of a followed task: 3 failed   4 timed out   5 cancelled   6 refused\n  130 after Ctrl-C, 143 after SIGTERM: the task continues\n")
}

// help prints the help of one command.
func (c command) help(w io.Writer, flags *flag.FlagSet) {
	printf(w, "usage: enqueue %s\n\n%s.\n", strings.TrimSpace(c.name+" "+c.args), strings.ToUpper(c.about[:1])+c.about[1:])
	if c.more != "" {
		printf(w, "%s\n", strings.TrimRight(c.more, "\n"))
	}
	printFlags(w, flags)
}

// printFlags prints a line for each flag.
func printFlags(w io.Writer, flags *flag.FlagSet) {
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
	printf(w, "\nflags:\n")
	for _, name := range names {
		printf(w, "  %-*s  %s\n", width, name, about[name])
	}
}

// parse parses flags and arguments in any order. Everything after -- is an argument.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	var rest []string
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: "); unknown {
				return nil, fmt.Errorf("unknown flag %s (put -- before words that begin with a dash)", name)
			}
			return nil, err
		}
		left := flags.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
	return rest, nil
}

// checkedFlag declares a flag whose value must pass valid. It returns the value as text, empty if the flag is not set.
func checkedFlag(flags *flag.FlagSet, name, about, format string, valid func(string) bool) *string {
	value := new(string)
	flags.Func(name, about, func(text string) error {
		if !valid(text) {
			return errors.New("must be " + format)
		}
		*value = text
		return nil
	})
	return value
}

func numberFlag(flags *flag.FlagSet, name, about string) *string {
	return checkedFlag(flags, name, about, "a number of at least 1", func(s string) bool { n, err := strconv.Atoi(s); return err == nil && n > 0 })
}

func dayFlag(flags *flag.FlagSet, name, about string) *string {
	return checkedFlag(flags, name, about, "a day like 2026-01-31", func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil })
}

// suggest returns a hint at the command that was probably meant: one that has name as a prefix, is a prefix of it, or
// has one typing error.
func suggest(name string) string {
	for _, c := range append(commands(), command{name: "serve"}) {
		if len(name) > 1 && (strings.HasPrefix(c.name, name) || strings.HasPrefix(name, c.name) || oneTypo(c.name, name)) {
			return fmt.Sprintf(", did you mean %s?", c.name)
		}
	}
	return ""
}

// oneTypo reports whether two words differ by at most one inserted, deleted, replaced or transposed letter.
func oneTypo(a, b string) bool {
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
