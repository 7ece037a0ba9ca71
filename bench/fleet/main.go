// Command fleet measures what a fleet of workers costs one Redis: idle, with silent runs, and with a backlog behind a
// limit. The workers are installed programs; the CLI is a fake. bench/README.md explains each row. Run
// `make bench-fleet`, or `go run ./fleet -h` in bench/ for its flags.
//
// The program re-executes itself as the CLI, and to enter a container.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/internal/fake/container"
)

func main() {
	if filepath.Base(os.Args[0]) == fakecli.Name {
		os.Exit(fakecli.Installed())
	}
	if len(os.Args) > 1 && os.Args[1] == container.Argument {
		fmt.Fprintln(os.Stderr, "bench:", container.Enter(os.Args[2:]))
		os.Exit(1)
	}
	table.Main(parse, measure)
}
