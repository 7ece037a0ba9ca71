// Command enqueue is the front door and its client: `enqueue serve` serves webhooks, API and console, and the other
// commands call that API. Run `enqueue help` for the list.
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command may have secrets in its environment; serve reports a failure
	os.Exit(run(context.Background(), os.Args[1:], world{
		getenv: os.Getenv, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, notify: notifySignals, process: true,
	}))
}
