package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/errand-fleet/errand/cmd/internal/version"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/spelling"
)

// The headings in the list of commands. Commands about tasks and the fleet call the API.
var (
	ofTasks  = &cobra.Group{ID: "tasks", Title: "Tasks:"}
	ofFleet  = &cobra.Group{ID: "fleet", Title: "The fleet:"}
	ofSetup  = &cobra.Group{ID: "setup", Title: "Setup:"}
	ofServer = &cobra.Group{ID: "server", Title: "Server:"}
)

// newRoot returns the tree of commands.
func newRoot(t *terminal) *cobra.Command {
	root := &cobra.Command{
		Use: "enqueue", Short: "Submit tasks to an errand fleet and follow them", Version: version.String(),
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: t.begin,
		RunE: func(c *cobra.Command, _ []string) error {
			c.SetOut(t.stderr)
			return errors.Join(c.Help(), exitUsage)
		},
	}
	root.SetOut(t.stdout)
	root.SetErr(t.stderr)
	root.SetVersionTemplate("enqueue {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if _, ok := errors.AsType[*pflag.NotExistError](err); ok {
			err = fmt.Errorf("%w (put -- before words that begin with a dash)", err)
		}
		return err
	})
	root.AddGroup(ofTasks, ofFleet, ofSetup, ofServer)
	root.SetHelpCommandGroupID(ofSetup.ID)
	root.SetCompletionCommandGroupID(ofSetup.ID)
	for _, part := range []struct {
		of   *cobra.Group
		list []*cobra.Command
	}{{ofTasks, taskCommands(t)}, {ofFleet, fleetCommands(t)}, {ofSetup, setupCommands(t)}} {
		for _, c := range part.list {
			c.GroupID = part.of.ID
			if part.of != ofSetup {
				t.jsonFlags(c)
			}
			root.AddCommand(c)
		}
	}
	root.AddCommand(serveCommand())
	describe(root)
	checkHelp(root)
	return root
}

// checkHelp refuses help about a command that does not exist.
func checkHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"}) // it exists
	help.Args = func(_ *cobra.Command, args []string) error {
		if about, rest, _ := root.Find(args); len(rest) > 0 {
			return checkArguments(about, rest)
		}
		return nil
	}
}

func taskCommands(t *terminal) []*cobra.Command {
	return []*cobra.Command{
		chatCommand(t), listCommand(t), showCommand(t), logsCommand(t), diffCommand(t), answerCommand(t),
		changeCommand(t, "cancel", "Cancel a task"), changeCommand(t, "retry", "Run a task again that has ended"),
		takeCommand(t),
	}
}

func fleetCommands(t *terminal) []*cobra.Command {
	return []*cobra.Command{
		costsCommand(t), findingsCommand(t), haltCommand(t, "pause CLASS", "Let no worker take tasks of a class"),
		haltCommand(t, "resume CLASS", "Undo pause"),
		haltCommand(t, "cordon WORKER", "Let a worker, or a host, take no tasks"),
		haltCommand(t, "uncordon WORKER", "Undo cordon"), inboxCommand(t), schedulesCommand(t), envCommand(t),
		auditCommand(t), tokenCommand(t), peopleCommand(t), doctorCommand(t),
	}
}

func setupCommands(t *terminal) []*cobra.Command {
	return []*cobra.Command{initCommand(t), loginCommand(t), logoutCommand(t), {
		Use: "version", Short: "Print the version", RunE: func(*cobra.Command, []string) error {
			printf(t.stdout, "enqueue %s\n", version.String())
			return nil
		},
	}}
}

// group returns a command with others, of which it runs the first, a list, if none is named.
func group(name, about string, list ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: name, Short: about, RunE: list[0].RunE}
	c.Flags().AddFlagSet(list[0].Flags())
	c.AddCommand(list...)
	return c
}

// jsonFlags declares the flags for the output of a command that calls the API, and of those below it. The annotation
// json says what is printed.
func (t *terminal) jsonFlags(c *cobra.Command) {
	flags := c.PersistentFlags()
	flags.BoolVar(&t.raw, "json", false, "print "+cmp.Or(c.Annotations["json"], "the API's JSON"))
	flags.FuncP("output", "o", "print in this `format`: text or json", func(format string) error {
		t.raw = format == "json"
		if !t.raw && format != "text" {
			return errors.New("must be text or json")
		}
		return nil
	})
}

// dial makes the client of the API.
func (t *terminal) dial() error {
	a, err := t.access()
	if err != nil {
		return err
	}
	if t.api, err = a.client(); err != nil {
		return err
	}
	t.api.pause = cmp.Or(t.pause, t.api.pause)
	return nil
}

// describe gives a command and those below it the check of their arguments and, from help.txt, a longer description.
func describe(c *cobra.Command) {
	for _, below := range c.Commands() {
		describe(below)
	}
	c.Args = checkArguments
	if more := c.CommandPath(); helpTexts.Lookup(more) != nil {
		var text strings.Builder
		printText(&text, more, map[string]any{"Addr": defaultAddr})
		c.Long = c.Short + ".\n" + text.String()
	}
}

// checkArguments compares the arguments of a command with their names in Use.
func checkArguments(c *cobra.Command, args []string) error {
	names, given := strings.Fields(c.Use)[1:], len(args)
	if empty := slices.Index(args, ""); empty >= 0 { // as of a variable that is not set
		given = empty
	}
	switch {
	case given < len(names):
		return fmt.Errorf("missing %s", strings.TrimSuffix(names[given], "…"))
	case len(args) == len(names) || strings.HasSuffix(c.Use, "…"):
		return nil
	case !c.HasSubCommands():
		return fmt.Errorf("unexpected argument %q", args[len(names)])
	}
	var known []string
	for _, below := range c.Commands() {
		known = append(known, below.Name())
	}
	near := cmp.Or(strings.Join(c.SuggestionsFor(args[0]), ", "), spelling.Nearest(args[0], known))
	if near == "" && c.HasParent() {
		near = strings.Join(known, ", ")
	}
	if near != "" {
		near = ", try " + near
	}
	return fmt.Errorf("unknown command %q%s", args[0], near)
}

// begin is called when the flags and arguments of a command are right.
func (t *terminal) begin(c *cobra.Command, _ []string) error {
	t.begun = true
	if c.GroupID == ofServer.ID {
		return nil // it warns in its log
	}
	for _, p := range config.Unknown(t.environ) {
		printf(t.stderr, "enqueue: warning: %v\n", p)
	}
	if c.Flags().Lookup("json") == nil {
		return nil // it does not call the API
	}
	return t.dial()
}

// run runs one command and returns the exit code. Results go to stdout, everything else to stderr.
func run(ctx context.Context, args []string, w world) int {
	t := newTerminal(w)
	root := newRoot(t)
	root.InitDefaultCompletionCmd()
	shells, _, _ := root.Find([]string{"completion"}) // it exists
	// without these it answers to shells that it does not know with its help
	shells.Args, shells.RunE = checkArguments, func(c *cobra.Command, _ []string) error { return c.Help() }
	root.SetArgs(longFlags(root, args))
	c, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		err = t.writeErr()
	case !t.begun:
		err = usageError{err}
	}
	return exitCode(c.CommandPath(), err, t.stderr)
}

// longFlags returns arguments with two dashes before the name of a flag, which may be written with one. The value of a
// flag may begin with a dash, too.
func longFlags(root *cobra.Command, args []string) []string {
	valued := map[string]bool{}
	addValued(root, valued)
	long := slices.Clone(args)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, _, set := strings.Cut(args[i], "=")
		if len(name) > 2 && name[0] == '-' && name[1] != '-' {
			long[i] = "-" + args[i]
		}
		if !set && valued[strings.TrimLeft(name, "-")] && name[0] == '-' {
			i++ // the next is its value
		}
	}
	return long
}

// addValued adds the names and letters of flags that take a value, of a command and of those below it.
func addValued(c *cobra.Command, valued map[string]bool) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal == "" {
			valued[f.Name], valued[f.Shorthand] = true, true
		}
	})
	delete(valued, "") // most flags have no letter
	for _, below := range c.Commands() {
		addValued(below, valued)
	}
}

// aboutTask makes run the function of a command whose first argument is the ID of a task or a part of it. It gets that,
// as a part of a path, and the other arguments.
func (t *terminal) aboutTask(
	c *cobra.Command, run func(context.Context, string, []string) error,
) *cobra.Command {
	c.ValidArgsFunction = t.completeID
	c.RunE = func(c *cobra.Command, args []string) error {
		return run(c.Context(), url.PathEscape(args[0]), args[1:])
	}
	return c
}

// completeTime bounds how long a completion waits for the front door.
const completeTime = 2 * time.Second

// completeID returns the IDs of the newest tasks, or nothing if it cannot find out.
func (t *terminal) completeID(
	c *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completeTime)
	defer cancel()
	var page taskPage
	if len(args) > 0 || t.dial() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if _, err := t.api.call(ctx, "GET /api/tasks?limit=200", nil, &page); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, v := range page.Tasks {
		ids = append(ids, cobra.CompletionWithDesc(display.TaskID(v.Task.ID), display.Line(v.Title)))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// parameter is a flag that sets a parameter of a request. The front door says whether a value is valid.
type parameter struct{ flag, name, about string }

// parameterFlags declares flags and returns the parameters, which parsing the flags fills.
func parameterFlags(flags *pflag.FlagSet, list ...parameter) url.Values {
	values := url.Values{}
	for _, p := range list {
		flags.Func(p.flag, p.about, func(text string) error {
			if text == "" { // as of a variable that is not set
				return errors.New("it is empty")
			}
			values.Set(p.name, text)
			return nil
		})
	}
	return values
}
