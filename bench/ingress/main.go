// Command ingress compares the front door with a bare asynq handler and with Slack's framework for Node, and prints a
// table: Slack events over HTTP, from the request to the queue and the response, and on to the start of the CLI.
// bench/README.md explains each row. Run `make bench-ingress`, or `go run ./ingress -h` in bench/ for its flags.
//
// The program re-executes itself as the bare contender and as the CLI. The others are the installed programs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
)

// bareVariable makes this program act as the bare contender.
const bareVariable = "ERRAND_BENCH_BARE"

func main() {
	play()
	table.Main(parse, measure)
}

// play runs the role of a re-executed process and exits; it returns in any other process.
func play() {
	var err error
	switch {
	case filepath.Base(os.Args[0]) == fakecli.Name:
		os.Exit(fakecli.Installed())
	case os.Getenv(bareVariable) != "":
		err = bare(os.Stdout)
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ingress:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
