// Command demo runs the whole system without any account: it starts fakes of Slack, GitHub and the model, starts the
// real `worker -standalone` against them, sends one mention and one pull request, and prints what happens. `demo
// -once` then exits, successfully only if both answers were posted.
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
