// Command errand-keeper is the process between a worker and the CLI of one run: it supervises the CLI, and kills and
// reaps everything that the CLI has started. Only programs that use package agent start it. Install it beside them,
// built from the same source; they check its version.
package main

import (
	"os"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

func main() {
	supervise.Main()
	_, _ = os.Stdout.WriteString(supervise.Version() + "\n") // for the worker's check: errand-keeper -version
}
