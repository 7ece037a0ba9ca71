package record

import (
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Why returns why a task waits, as a clause for people. Every view shows the same clause. It is empty for a task
// that does not wait.
func Why(rec store.Record) string {
	switch {
	case rec.State == store.Running:
		return rec.Why // claimed, but its work has not begun
	case rec.State != store.Waiting:
		return ""
	case rec.Blocked != (store.Blocked{}):
		return tasks.BlockedBy(tasks.Blocked(rec.Blocked))
	case rec.Why != "":
		return rec.Why
	}
	return tasks.NoWorker
}
