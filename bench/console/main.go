// Command console measures the console of a front door and prints a table: the delay of events in pages, the cost of an
// open page and its effect on incoming events, and the delay of long lists. bench/README.md explains each row. Run
// `make bench-console`, or `go run ./console -h` in bench/ for its flags.
//
// The program acts as the browsers and, re-executed, as the worker. The front door is the installed one.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/errand-fleet/errand/bench/table"
)

// workerVariable makes this program act as the worker.
const workerVariable = "ERRAND_BENCH_WORKER"

func main() {
	play()
	table.Main(parse, measure)
}

// play runs the worker in a re-executed process and exits; it returns in any other process.
func play() {
	if os.Getenv(workerVariable) == "" {
		return
	}
	if err := work(context.Background(), os.Getenv("REDIS_URL"), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
