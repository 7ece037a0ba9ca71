package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/tasks"
)

// command is a command of the API's client.
type command struct {
	group             group
	name, args, about string
	json              string // what -json prints; empty: the API's JSON
	offline           bool   // the command calls no API and has no -json
	prepare           prepareFunc
}

// group is a heading in the list of commands.
type group string

const (
	ofTasks group = "tasks"
	ofFleet group = "the fleet"
	ofSetup group = "setup"
)

// runFunc runs a command with its arguments.
type runFunc = func(context.Context, []string) error

// prepareFunc declares a command's flags and returns the function that runs the command.
type prepareFunc = func(*terminal, *flag.FlagSet) runFunc

func commands() (all []command) {
	for _, of := range []struct {
		group group
		list  []command
	}{{ofTasks, taskCommands()}, {ofFleet, fleetCommands()}, {ofSetup, setupCommands()}} {
		for _, c := range of.list {
			c.group = of.group
			all = append(all, c)
		}
	}
	return all
}

func taskCommands() []command {
	return []command{
		{
			name: "chat", args: "[-follow] [-repo o/r | -dir PATH] PROMPT…", about: "submit a task",
			json: chatJSON, prepare: chatCommand,
		},
		{name: "list", args: "[filters]", about: "list tasks, newest first", prepare: listCommand},
		{name: "show", args: "ID", about: "show a task and its answer", prepare: showCommand},
		{
			name: "logs", args: "[-f] ID", about: "print or follow the log of a task", json: logsJSON,
			prepare: logsCommand,
		},
		{
			name: "diff", args: "ID", about: "print what a task has changed",
			json: "the diff as it is, also on a terminal", prepare: diffCommand,
		},
		{name: "answer", args: "[-question KEY] ID WORDS…", about: "answer a task's question", prepare: answerCommand},
		{name: "cancel", args: "ID", about: "cancel a task", prepare: changeCommand("cancel")},
		{name: "retry", args: "ID", about: "run a task again that has ended", prepare: changeCommand("retry")},
	}
}

func fleetCommands() []command {
	return []command{
		{name: "costs", args: "[filters]", about: "show the costs of runs", prepare: costsCommand},
		{
			name: "findings", args: "-repo o/r",
			about: "show what people did with the findings of reviews", prepare: findingsCommand,
		},
		{
			name: "pause", args: "CLASS", about: "let no worker take tasks of a class",
			prepare: haltCommand("classes", "pause"),
		},
		{name: "resume", args: "CLASS", about: "undo pause", prepare: haltCommand("classes", "resume")},
		{
			name: "cordon", args: "WORKER | HOST", about: "let a worker take no tasks",
			prepare: haltCommand("workers", "cordon"),
		},
		{name: "uncordon", args: "WORKER | HOST", about: "undo cordon", prepare: haltCommand("workers", "uncordon")},
		{
			name: "webhooks", args: "[replay ID]",
			about: "list the deliveries of webhooks that have failed, or send one again", prepare: webhooksCommand,
		},
		{
			name: "schedules", args: "[resume NAME]",
			about:   "list the schedules, or let a paused one start tasks again",
			prepare: schedulesCommand,
		},
		{
			name: "env", args: "list | show OWNER/NAME | rebuild OWNER/NAME | rm KEY",
			about: "list the environments of repositories, rebuild one, or remove one", prepare: envCommand,
		},
		{
			name: "audit", args: "[filters] | verify",
			about: "list what people changed, or verify that no entry was changed", prepare: auditCommand,
		},
		{
			name: "token", args: "create -scope ROLE NAME | list | revoke NAME",
			about: "manage API tokens", prepare: tokenCommand,
		},
		{
			name: "people", args: "list | unlink USER",
			about:   "list the accounts in Slack that people have linked to GitHub, or unlink one",
			prepare: peopleCommand,
		},
		{
			name: "doctor", args: "[-repo o/r]",
			about: "check whether the fleet works, or what a run in a repository would get", json: doctorJSON,
			prepare: doctorCommand,
		},
	}
}

func setupCommands() []command {
	return []command{
		{
			name: "init", args: "[guide | slack | github]",
			about: "set errand up step by step, write .env and errand.yaml, or print an app manifest", offline: true,
			prepare: initCommand,
		},
		{
			name: "login", args: "URL", about: "save the address and token of a front door",
			offline: true, prepare: loginCommand,
		},
		{name: "logout", args: "", about: "delete the saved address and token", offline: true, prepare: logoutCommand},
		{
			name: "completion", args: "bash | zsh | fish", about: "print a completion script",
			offline: true, prepare: completionCommand,
		},
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
	switch name {
	case "serve": // with help
		printText(w.stdout, "serve", nil)
		return 0
	case "version", "-version", "--version":
		printf(w.stdout, "enqueue %s\n", wire.Version())
		return 0
	case completeWord:
		complete(ctx, rest, newTerminal(w))
		return 0
	}
	for _, c := range commands() {
		if c.name == name {
			return exitCode(c.run(ctx, rest, newTerminal(w)), w.stderr)
		}
	}
	printf(w.stderr, "enqueue: unknown command %q%s `enqueue help` lists the commands\n", name,
		cmp.Or(suggest(name), ";"))
	return int(exitUsage)
}

func (c command) run(ctx context.Context, args []string, t *terminal) error {
	flags, do := c.declare(t)
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
		a, err := t.access()
		if err == nil {
			t.api, err = a.client()
		}
		if err != nil {
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

// declare returns the command's flags and the function that runs it.
func (c command) declare(t *terminal) (*flag.FlagSet, runFunc) {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	if !c.offline {
		flags.BoolVar(&t.raw, "json", false, "print "+cmp.Or(c.json, "the API's JSON"))
		flags.Func("o", "print in this `format`: text or json", func(format string) error {
			t.raw = format == "json"
			if !t.raw && format != "text" {
				return errors.New("must be text or json")
			}
			return nil
		})
	}
	return flags, c.prepare(t, flags)
}

// oneID returns the task ID that is the command's only argument.
func (t *terminal) oneID(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 {
		return "", exitUsage
	}
	if tasks.ValidID(args[0]) {
		return args[0], nil
	}
	return t.findID(ctx, args[0])
}

// shortest is how many characters of an ID are enough to look for it.
const shortest = 4

// findID returns the ID of the only recent task whose ID begins or ends with a text.
func (t *terminal) findID(ctx context.Context, part string) (string, error) {
	if len(part) < shortest {
		return "",
			fmt.Errorf("%q is not a task ID: `enqueue list` shows them, and the first or last "+
				"%d characters can be enough", part, shortest)
	}
	var page taskPage
	if _, err := t.api.call(ctx, "GET /api/tasks?limit=200&text="+url.QueryEscape(part), nil, &page); err != nil {
		return "", err
	}
	var found []string
	for _, v := range page.Tasks {
		if id := v.Task.ID; tasks.ValidID(id) && (strings.HasPrefix(id, part) || strings.HasSuffix(id, part)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no recent task has an ID that begins or ends with %q: `enqueue list` shows them", part)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d tasks have an ID that begins or ends with %q, such as %s and %s: write more of it",
		len(found), part, found[0], found[1])
}

// helpText has the long texts for people.
//
//go:embed help.txt
var helpText string

var helpTexts = template.Must(template.New("").Funcs(template.FuncMap{"program": program}).Parse(helpText))

// printText prints a text of help.txt.
func printText(w io.Writer, name string, data any) { _ = helpTexts.ExecuteTemplate(w, name, data) }

func usage(w io.Writer) {
	type section struct {
		Name  group
		Lines []string
	}
	var list []section
	for _, c := range commands() {
		if len(list) == 0 || list[len(list)-1].Name != c.group {
			list = append(list, section{Name: c.group})
		}
		last := &list[len(list)-1]
		last.Lines = append(last.Lines, fmt.Sprintf("%-11s %s", c.name, c.about))
	}
	printText(w, "usage", map[string]any{"Sections": list, "Addr": defaultAddr})
}

// help prints the help of one command.
func (c command) help(w io.Writer, flags *flag.FlagSet) {
	printf(w, "usage: enqueue %s\n\n%s.\n", strings.TrimSpace(c.name+" "+c.args),
		strings.ToUpper(c.about[:1])+c.about[1:])
	if more := "help " + c.name; helpTexts.Lookup(more) != nil {
		printText(w, more, nil)
	}
	columns, heading := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), "\nflags:\n"
	flags.VisitAll(func(f *flag.Flag) {
		printf(w, "%s", heading)
		heading = ""
		value, about := flag.UnquoteUsage(f)
		printf(columns, "  %s\t%s\n", strings.TrimSpace("-"+f.Name+" "+value), about)
	})
	_ = columns.Flush()
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

// parameter is a flag that sets a parameter of a request. valid may be nil.
type parameter struct {
	flag, name, about string
	valid             func(string) error
}

// parameterFlags declares flags and returns the parameters, which parsing the flags fills.
func parameterFlags(flags *flag.FlagSet, list ...parameter) url.Values {
	values := url.Values{}
	for _, p := range list {
		flags.Func(p.flag, p.about, func(text string) error {
			values.Set(p.name, text)
			if p.valid != nil {
				return p.valid(text)
			}
			return nil
		})
	}
	return values
}

func validNumber(text string) error {
	if n, err := strconv.Atoi(text); err != nil || n < 1 {
		return errors.New("must be a number of at least 1")
	}
	return nil
}

func validDay(text string) error {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return errors.New("must be a day like 2026-01-31")
	}
	return nil
}

// suggest returns a hint at the command that was probably meant: one that begins with name, or has a typing error.
func suggest(name string) string {
	known := commandNames()
	meant := config.Nearest(name, known)
	i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(k, name) })
	if i >= 0 && len(name) > 1 {
		meant = known[i]
	}
	if slices.Contains([]string{"guide", "slack", "github"}, name) {
		meant = "init " + name
	}
	if meant == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", meant)
}
