// Command environment measures what runs in a sandbox pay for their environment, and prints a table. bench/README.md
// explains each row. Run `make bench-environment`, or `go run ./environment -h` in bench/ for its flags.
package main

import (
	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/table"
)

func main() {
	agent.KeeperMain()
	table.Main(parse, measure)
}
