// Command console measures the console of a front door and prints a table: how soon an event is in the pages that watch its task, what an
// open page costs, what the way in loses by it, and how soon a list of many tasks begins. bench/README.md says what each row means. Run
// `make bench-console`, or `go run ./console -h` in bench/ for its flags.
//
// The program plays the browsers and, re-executed, the worker. The front door is the one that is installed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// workerVariable makes this program the worker.
const workerVariable = "ERRAND_BENCH_WORKER"

func main() {
	play()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// play is the whole life of a process that was started to play the worker; it returns in one that was not.
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
