// Command demo shows the whole system at work without any account: it starts fakes of Slack, GitHub and the model, starts the real
// `worker -standalone` against them, sends one mention and one pull request, and tells what happens. `demo -once` ends by itself,
// successfully only if both answers were posted.
package main

import (
	"context"
	"os"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
)

func main() {
	agent.KeeperMain()
	os.Exit(run(wire.Signals(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}
