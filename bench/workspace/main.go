// Command workspace compares the clones of tasks with git's own, with a large generated repository, and prints a table.
// bench/README.md explains each row. Run `make bench-workspace`, or `go run ./workspace -h` in bench/ for its flags.
package main

import (
	"github.com/errand-fleet/errand/bench/table"
)

func main() {
	table.Main(parse, measure)
}
