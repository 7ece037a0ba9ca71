// Command enqueue is the front door: `enqueue serve` takes webhooks and serves API and console, and its other commands are the
// client of that API. Run `enqueue help` for the list.
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command: all may have secrets in their environment
	os.Exit(run(context.Background(), os.Args[1:], world{
		getenv: os.Getenv, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, notify: signals, process: true,
	}))
}
