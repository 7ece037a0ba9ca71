// Command fleet measures what a fleet of workers costs one Redis: idle, with silent runs, and with a backlog behind a
// limit. The workers are installed programs; the CLI is a fake. bench/README.md explains each row. Run
// `make bench-fleet`, or `go run ./fleet -h` in bench/ for its flags.
//
// The program re-executes itself as the CLI.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/errand-fleet/errand/bench/fakecli"
)

// cliName is the name of this program in the role of the CLI.
const cliName = "claude"

func main() {
	if filepath.Base(os.Args[0]) == cliName {
		os.Exit(cli(os.Args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// cli answers the worker's checks and otherwise obeys its prompts.
func cli(args []string) int {
	switch args[0] {
	case "--version":
		fmt.Println("2.1.332 (Claude Code)")
		return 0
	case "auth":
		fmt.Println(`{"loggedIn":true,"authMethod":"api_key"}`)
		return 0
	}
	return fakecli.Main(os.Stdin, os.Stdout)
}
