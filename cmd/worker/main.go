// Command worker drains the queues: it runs the Claude Code CLI on tasks and posts what comes of them. With -standalone it is the
// whole system in one process. Run `worker -h` for its flags; everything else is configured by the environment (.env.example).
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command, for all have the secrets in their environment; what starts runs says so where it does not help
	os.Exit(run(wire.Signals(context.Background()), os.Args[1:], os.Getenv, os.Stdout, os.Stderr, wire.Options{Process: true}))
}
