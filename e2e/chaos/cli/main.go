// Command cli replaces the Claude Code CLI in the chaos harness. It speaks the part of the real protocol that errand
// uses, follows the orders in its messages, and reports to the harness's witness which messages it has received.
//
// It sends real requests to the model through the run's gateway, and the responses decide whether it retries, gives up
// or reports a usage limit. It waits tenths of seconds where the real CLI waits seconds.
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
		fmt.Println("2.1.332 (Claude Code)")
	case slices.Equal(args, []string{"auth", "status"}):
		fmt.Println(`{"loggedIn":true,"authMethod":"api_key"}`)
	case slices.Equal(args, []string{toolArgument}):
		os.Exit(tool())
	default:
		os.Exit(session(parse(args)))
	}
}

// options are the arguments that matter here.
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
