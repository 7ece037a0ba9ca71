// Command ingress measures the front door beside what it is made of and beside its like in the world of Node, and prints a table:
// events of Slack's by HTTP, from the request to the queue and the answer, and on to the start of the CLI. bench/README.md says what each
// row means. Run `make bench-ingress`, or `go run ./ingress -h` in bench/ for its flags.
//
// The program plays the bare contender and the CLI itself, re-executed. The others are those that are installed.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// bareVariable makes this program the bare contender.
const bareVariable = "ERRAND_BENCH_BARE"

func main() {
	play()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// play is the whole life of a process that was started to play a part; it returns in one that was not.
func play() {
	var err error
	switch {
	case filepath.Base(os.Args[0]) == cliName:
		err = cli(os.Args[1:])
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
