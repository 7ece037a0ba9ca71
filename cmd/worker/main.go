// Command worker takes tasks from the queues, runs the Claude Code CLI on them and posts the answers. With -standalone
// it is the whole system in one process. Run `worker -h` for its flags; the environment configures everything else
// (.env.example).
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command has secrets in its environment; wire.Start reports a failure
	os.Exit(run(wire.Signals(context.Background()), invocation{os.Args[1:], os.Getenv, os.Stdout, os.Stderr}, wire.Options{Process: true}))
}
