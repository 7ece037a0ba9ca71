package tasks_test

import (
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// An ID depends on the event only, so a redelivery gives the same one.
func ExampleNewID() {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	fmt.Println(tasks.NewID(at, "slack", "T1.C1.1700000000.000100"))
	fmt.Println(tasks.NewID(at, "slack", "T1.C1.1700000000.000100") == tasks.NewID(at, "slack",
		"T1.C1.1700000000.000200"))
	// Output:
	// 1793534400000000-slack-t1.c1.1700000000.000100
	// false
}
