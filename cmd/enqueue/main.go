// Command enqueue is the front door: `enqueue serve` takes webhooks and serves API and console, and its other commands are the
// client of that API. Run `enqueue help` for the list.
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
)

func main() {
	agent.KeeperMain()
	os.Exit(run(wire.Signals(context.Background()), os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
