// Command cli is the Claude Code CLI of the chaos harness: it speaks the protocol of the real one (claude-cli.md §3-10) as far as errand
// uses it, does what the orders in its messages say, and tells the harness's witness which messages it has taken up.
//
// What it says to the model is a real request through the run's gateway; what the model answers decides whether it retries, gives up or
// reports a usage limit. Its clock is faster than the real one's: it waits tenths of seconds where that waits seconds.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	args := os.Args[1:]
	switch {
	case slices.Equal(args, []string{"--version"}):
		fmt.Println("2.1.329 (Claude Code)")
	case slices.Equal(args, []string{"auth", "status"}):
		fmt.Println(`{"loggedIn":true,"authMethod":"api_key"}`)
	case slices.Equal(args, []string{toolArgument}):
		os.Exit(tool())
	default:
		os.Exit(session(parse(args)))
	}
}

// options are what of the arguments matters here.
type options struct {
	session, resume string
	fork            bool
}

func parse(args []string) (o options) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--session-id":
			o.session = value
		case "--resume":
			o.resume = value
		case "--fork-session":
			o.fork = true
		}
	}
	return o
}
