package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

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
