// Command workspace compares the clones of tasks with git's own, with a large generated repository, and prints a table.
// bench/README.md explains each row. Run `make bench-workspace`, or `go run ./workspace -h` in bench/ for its flags.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/errand-fleet/errand/bench/table"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := table.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, parse, measure)
	stop()
	os.Exit(code)
}
