package main

import (
	"context"
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// shells have a completion script in help.txt. Each calls `enqueue __complete` with the words of the command line.
var shells = []string{"bash", "zsh", "fish"}

// completeWord is the hidden command that the scripts call.
const completeWord = "__complete"

// completeTime bounds how long a completion waits for the front door.
const completeTime = 2 * time.Second

func completionCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(_ context.Context, args []string) error {
		if len(args) != 1 || !slices.Contains(shells, args[0]) {
			return exitUsage
		}
		printText(t.stdout, "completion "+args[0], nil)
		return nil
	}
}

// complete prints the words that can take the place of the last one, a line each: commands, flags, and IDs of tasks. It
// prints nothing if it cannot find out.
func complete(ctx context.Context, words []string, t *terminal) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	var list []string
	switch {
	case len(words) == 1:
		list = commandNames()
	case strings.HasPrefix(last, "-"):
		list = flagNames(words[0], t)
	default:
		list = t.completeArgument(ctx, words[0])
	}
	for _, word := range list {
		if strings.HasPrefix(word, last) {
			printf(t.stdout, "%s\n", word)
		}
	}
}

func commandNames() []string {
	names := []string{"serve", "help", "version"}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

func flagNames(name string, t *terminal) (names []string) {
	for _, c := range commands() {
		if c.name == name {
			flags, _ := c.declare(t)
			flags.VisitAll(func(f *flag.Flag) { names = append(names, "-"+f.Name) })
		}
	}
	return names
}

// completeArgument returns the arguments that a command takes: the newest tasks, or a fixed list.
func (t *terminal) completeArgument(ctx context.Context, name string) []string {
	switch name {
	case "help":
		return commandNames()
	case "completion":
		return shells
	case "pause", "resume":
		return tasks.Classes
	case "init":
		return []string{"slack", "github"}
	case "show", "logs", "answer", "cancel", "retry":
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	a, err := t.access()
	if err != nil {
		return nil
	}
	if t.api, err = a.client(); err != nil {
		return nil
	}
	var page taskPage
	if _, err := t.api.call(ctx, "GET /api/tasks?limit=200", nil, &page); err != nil {
		return nil
	}
	var ids []string
	for _, v := range page.Tasks {
		ids = append(ids, legible.Line(v.Task.ID))
	}
	return ids
}
