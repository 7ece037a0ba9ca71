package main

import (
	"errors"
	"flag"
	"io"
)

// initialise prints what sets a service up for errand. It talks to nobody: the manifest goes to stdout, what to do with it to stderr.
func initialise(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "slack":
			return initSlack(args[1:], getenv, stdout, stderr)
		case "github":
			return initGitHub(args[1:], getenv, stdout, stderr)
		}
	}
	say(stderr, "usage: enqueue init slack|github [flags]; -h after it lists them\n")
	return errUsage
}

// initFlags are those of every service.
func initFlags(usage string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		say(stderr, "usage: enqueue init %s\n", usage)
		flags.PrintDefaults()
	}
	return flags
}

// parseInit takes flags and nothing behind them. help says that they were only asked for.
func parseInit(flags *flag.FlagSet, args []string) (help bool, err error) {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return true, nil
	case err != nil:
		return false, errUsage
	case flags.NArg() > 0:
		flags.Usage()
		return false, errUsage
	}
	return false, nil
}
