// Command agent compares package agent with the official TypeScript SDK and with the throughput of a pipe, and prints a
// table. bench/README.md explains each row. Run `make bench`, or `go run ./agent -h` in bench/ for its flags.
//
// The program re-executes itself for every role: keeper, fake CLI, tool, and the worker whose memory and CPU are
// measured.
package main

import (
	"fmt"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/table"
)

func main() {
	agent.KeeperMain()
	play(os.Getenv(fakecli.RoleVariable))
	table.Main(parse, measure)
}

// workerRole is this program as a worker.
const workerRole = "worker"

// play runs the role of a re-executed process and exits; it returns in any other process.
func play(role string) {
	switch role {
	case fakecli.CLI:
		os.Exit(fakecli.Main(os.Stdin, os.Stdout))
	case fakecli.Tool:
		fakecli.ToolMain()
		os.Exit(0)
	case workerRole:
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}
